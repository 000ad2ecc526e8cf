#include <gtest/gtest.h>

#include "cases.h"

namespace tropical::testing {
namespace {

std::string message_of(auto&& call, ErrorCode code) {
  try {
    call();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), code) << e.what();
    return e.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

constexpr Semiring kAll[] = {Semiring::max_plus, Semiring::min_plus, Semiring::max_mul, Semiring::min_mul,
                             Semiring::max_min,  Semiring::min_max,  Semiring::or_and};

TEST(Names, EverySemiringInEverySpelling) {
  const auto camel = [](std::string name) {
    std::string s;
    bool up = true;
    for (const char ch : name) {
      if (ch != '_') s += up ? static_cast<char>(ch - 'a' + 'A') : ch;
      up = ch == '_';
    }
    return s;
  };
  for (const Semiring s : kAll) {
    const std::string name = semiring_name(s);
    std::string dashed = name, joined = name, blank = name, upper = name;
    std::replace(dashed.begin(), dashed.end(), '_', '-');
    std::replace(blank.begin(), blank.end(), '_', ' ');
    std::erase(joined, '_');
    for (char& ch : upper) ch = ch == '_' ? ch : static_cast<char>(ch - 'a' + 'A');
    for (const std::string& spelling : {name, dashed, joined, blank, upper, camel(name)})
      EXPECT_EQ(parse_semiring(spelling), s) << spelling;
  }
}

TEST(Names, OtherNamesInUse) {
  EXPECT_EQ(parse_semiring("tropical"), Semiring::max_plus);
  EXPECT_EQ(parse_semiring("max_times"), Semiring::max_mul);
  EXPECT_EQ(parse_semiring("min-times"), Semiring::min_mul);
  EXPECT_EQ(parse_semiring("AndOr"), Semiring::or_and);
  EXPECT_EQ(parse_semiring("boolean"), Semiring::or_and);
}

TEST(Names, UnknownNameListsTheKnown) {
  for (const char* bad : {"", "plus_times", "max_plu", "max_pluss", "log_plus"}) {
    const std::string text = message_of([&] { parse_semiring(bad); }, ErrorCode::invalid_value);
    EXPECT_NE(text.find("'" + std::string(bad) + "'"), std::string::npos) << text;
    for (const Semiring s : kAll) EXPECT_NE(text.find(semiring_name(s)), std::string::npos) << text;
  }
}

TEST(Names, DTypes) {
  EXPECT_STREQ(dtype_name(DType::f16), "float16");
  EXPECT_STREQ(dtype_name(DType::bf16), "bfloat16");
  EXPECT_STREQ(dtype_name(DType::boolean), "bool");
  EXPECT_EQ(dtype_of({kDLFloat, 64, 1}, "a"), DType::f64);
  EXPECT_EQ(dtype_of({kDLBfloat, 16, 1}, "a"), DType::bf16);
  EXPECT_EQ(dtype_of({kDLInt, 16, 1}, "a"), DType::i16);
  EXPECT_EQ(dtype_of({kDLBool, 8, 1}, "a"), DType::boolean);
}

TEST(Names, UnknownDTypeSaysWhatCame) {
  const struct {
    DLDataType dtype;
    const char* came;
  } cases[] = {{{kDLUInt, 8, 1}, "uint8"},       {{kDLUInt, 32, 1}, "uint32"},
               {{kDLInt, 8, 1}, "int8"},         {{kDLComplex, 64, 1}, "complex64"},
               {{kDLFloat, 32, 4}, "float32x4"}, {{17, 8, 1}, "DLPack type code 17, 8 bits"}};
  for (const auto& c : cases) {
    const std::string text = message_of([&] { dtype_of(c.dtype, "b"); }, ErrorCode::invalid_type);
    EXPECT_EQ(text.rfind("b has dtype", 0), 0u) << text;
    EXPECT_NE(text.find(c.came), std::string::npos) << text;
    EXPECT_NE(text.find("float32, float64, float16, bfloat16, int16, int32, int64, bool"), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace tropical::testing
