// Names of semirings and element types, from the lists that define them.
#include <algorithm>
#include <cctype>
#include <iterator>
#include <optional>

#include "tropical_gemm/matmul.h"
#include "visit.h"

namespace tropical {
namespace {

// Other spellings in use, after folding; the names themselves need no row.
struct Alias {
  const char* folded;
  Semiring semiring;
};
constexpr Alias kAliases[] = {
    {"tropical", Semiring::max_plus}, {"maxadd", Semiring::max_plus},  {"minadd", Semiring::min_plus},
    {"maxtimes", Semiring::max_mul},  {"mintimes", Semiring::min_mul}, {"bottleneck", Semiring::max_min},
    {"minimax", Semiring::min_max},   {"andor", Semiring::or_and},     {"boolean", Semiring::or_and},
};

// "Max-Plus" and "max_plus" are one name.
std::string fold(std::string_view name) {
  std::string s;
  for (const char ch : name)
    if (ch != '_' && ch != '-' && ch != ' ') s += static_cast<char>(std::tolower(static_cast<unsigned char>(ch)));
  return s;
}

template <class F>
void for_each_semiring(F&& f) {
  [&]<class... S>(TypeList<S...>) { (f.template operator()<S>(), ...); }(AllSemirings{});
}

// "uint8", "float32x4"; "DLPack type code 17, 8 bits" for a kind that has no name here.
std::string described(const DLDataType& dtype) {
  static constexpr const char* kKinds[] = {"int", "uint", "float", "opaque", "bfloat", "complex", "bool"};
  const std::string bits = std::to_string(dtype.bits);
  const std::string lanes = std::to_string(dtype.lanes);
  if (dtype.code < std::size(kKinds)) return kKinds[dtype.code] + bits + (dtype.lanes == 1 ? "" : "x" + lanes);
  return "DLPack type code " + std::to_string(dtype.code) + ", " + bits + " bits" +
         (dtype.lanes == 1 ? "" : ", " + lanes + " lanes");
}

}  // namespace

Semiring parse_semiring(std::string_view name) {
  const std::string folded = fold(name);
  std::optional<Semiring> found;
  std::string known;
  for_each_semiring([&]<class S>() {
    if (fold(S::kName) == folded) found = S::kId;
    known += std::string(known.empty() ? "" : ", ") + S::kName;
  });
  for (const Alias& alias : kAliases)
    if (folded == alias.folded) found = alias.semiring;
  if (!found)
    throw Error(ErrorCode::invalid_value, "semiring is '" + std::string(name) + "', expected one of " + known);
  return *found;
}

const char* semiring_name(Semiring semiring) {
  const char* name = "unknown";
  visit_semiring(semiring, [&]<class S>() { name = S::kName; });
  return name;
}

const char* dtype_name(DType dtype) {
  const char* name = "unknown";
  visit_dtype(dtype, [&]<class T>() { name = TypeInfo<T>::kName; });
  return name;
}

DType dtype_of(const DLDataType& dtype, const char* argument) {
  std::optional<DType> found;
  const auto look = [&]<class T>() {
    constexpr DLDataType d = dlpack_dtype<T>();
    if (d.code == dtype.code && d.bits == dtype.bits && dtype.lanes == 1) found = TypeInfo<T>::kId;
  };
  [&]<class... T>(TypeList<T...>) { (look.template operator()<T>(), ...); }(AllTypes{});
  if (found) return *found;
  std::string known;
  const auto list = [&]<class T>() { known += std::string(known.empty() ? "" : ", ") + TypeInfo<T>::kName; };
  [&]<class... T>(TypeList<T...>) { (list.template operator()<T>(), ...); }(AllTypes{});
  throw Error(ErrorCode::invalid_type,
              std::string(argument) + " has dtype " + described(dtype) + ", expected one of " + known);
}

}  // namespace tropical
