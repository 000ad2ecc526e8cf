// Every error of the entry: its code, the argument it names, and that nothing was written.
#include "validate.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <optional>

#include "cases.h"

namespace tropical::testing {
namespace {

constexpr int64_t kHuge = int64_t{1} << 33;

// A tensor over given memory, with shape and strides of its own so that a test may bend them.
struct Tensor {
  std::vector<char> memory;
  Shape shape, strides;
  DLTensor dl{};

  Tensor(Shape s, DLDataType dtype) : shape(std::move(s)) {
    memory.assign(static_cast<size_t>(element_count(shape) * dtype.bits / 8 + 64), 0x33);
    strides.resize(shape.size());
    int64_t step = 1;
    for (size_t d = shape.size(); d-- > 0; step *= shape[d]) strides[d] = step;
    dl.data = memory.data();
    dl.device = {kDLCPU, 0};
    dl.dtype = dtype;
    sync();
  }
  Tensor(const Tensor&) = delete;
  Tensor& operator=(const Tensor&) = delete;
  void sync() {
    dl.ndim = static_cast<int32_t>(shape.size());
    dl.shape = shape.data();
    dl.strides = strides.data();
  }
  void reshape(Shape s, Shape st) {
    shape = std::move(s), strides = std::move(st);
    sync();
  }
};

constexpr DLDataType kFloat = dlpack_dtype<float>(), kIndex = dlpack_dtype<int32_t>();

// A valid product (2, 3, 4) x (4, 5) -> (2, 3, 5) and its gradient, for a test to spoil.
struct Call {
  Tensor a{{2, 3, 4}, kFloat}, b{{4, 5}, kFloat}, c{{2, 3, 5}, kFloat}, argmax{{2, 3, 5}, kIndex};
  Tensor grad_c{{2, 3, 5}, kFloat}, grad_a{{2, 3, 4}, kFloat}, grad_b{{4, 5}, kFloat};
  Semiring semiring = Semiring::max_plus;
  bool with_argmax = true;
  MatmulOptions options;
  int threads = 0;

  void matmul() const { tropical::matmul(semiring, a.dl, b.dl, c.dl, with_argmax ? &argmax.dl : nullptr, options); }
  void backward() const {
    tropical::matmul_backward(semiring, grad_c.dl, argmax.dl, a.dl, b.dl, &grad_a.dl, &grad_b.dl, threads);
  }
};

struct Fault {
  const char* name;
  ErrorCode code;
  std::vector<std::string> says;  // parts of the message, the argument's name first
  std::function<void(Call&)> spoil;
};

void expect_fault(const Fault& fault, void (Call::*run)() const) {
  SCOPED_TRACE(fault.name);
  Call call;
  fault.spoil(call);
  const auto outputs = [&] {
    return std::vector{call.c.memory, call.argmax.memory, call.grad_a.memory, call.grad_b.memory};
  };
  const auto before = outputs();
  try {
    (call.*run)();
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), fault.code) << e.what();
    for (const std::string& part : fault.says)
      EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << "no '" << part << "' in: " << e.what();
  }
  EXPECT_EQ(outputs(), before) << "an output was written";
}

// Faults of the operands, common to the product and its gradient.
std::vector<Fault> operand_faults() {
  const auto value = ErrorCode::invalid_value;
  const auto type = ErrorCode::invalid_type;
  return {
      {"K differs",
       value,
       {"a has shape (2, 3, 4)", "b has shape (7, 5)", "4", "7"},
       [](Call& x) {
         x.b.reshape({7, 5}, {5, 1});
       }},
      {"K differs, b a vector", value, {"b has shape (7,)"}, [](Call& x) { x.b.reshape({7}, {1}); }},
      {"batches do not broadcast",
       value,
       {"(2, 3, 4)", "(3, 4, 5)", "broadcast"},
       [](Call& x) {
         x.b.reshape({3, 4, 5}, {0, 5, 1});
       }},
      {"a without axes", value, {"a has 0 dimensions"}, [](Call& x) { x.a.reshape({}, {}); }},
      {"b without axes", value, {"b has 0 dimensions"}, [](Call& x) { x.b.reshape({}, {}); }},
      {"too many axes", value, {"a has 35 dimensions", "34"}, [](Call& x) { x.a.reshape(Shape(35, 1), Shape(35, 1)); }},
      {"negative size",
       value,
       {"b", "negative", "(4, -5)"},
       [](Call& x) {
         x.b.reshape({4, -5}, {5, 1});
       }},
      {"size beyond 64 bits",
       value,
       {"a", "bytes"},
       [](Call& x) {
         x.a.reshape({kHuge, kHuge, 4}, {0, 0, 1});
       }},
      {"product beyond 64 bits",
       value,
       {"product", "memory"},
       [](Call& x) {
         x.a.reshape({kHuge, 4}, {0, 1}), x.b.reshape({4, kHuge}, {1, 0});
       }},
      {"batches beyond 64 bits",
       value,
       {"product", "memory"},
       [](Call& x) {
         x.a.reshape({kHuge, 1, 1, 4}, {0, 0, 0, 1}), x.b.reshape({kHuge, 4, 5}, {0, 5, 1});
       }},
      {"null data", value, {"a", "null"}, [](Call& x) { x.a.dl.data = nullptr; }},
      {"unaligned", value, {"b", "aligned", "4"}, [](Call& x) { x.b.dl.byte_offset = 2; }},
      {"device",
       ErrorCode::unsupported,
       {"a", "DLPack type 8"},
       [](Call& x) {
         x.a.dl.device = {kDLMetal, 0};
       }},
      {"device of b",
       ErrorCode::unsupported,
       {"b", "DLPack type 10"},
       [](Call& x) {
         x.b.dl.device = {kDLROCM, 0};
       }},
      {"a alone on a GPU",
       value,
       {"a is on cuda:0", "b is on the CPU"},
       [](Call& x) {
         x.a.dl.device = {kDLCUDA, 0};
       }},
      {"two GPUs",
       value,
       {"a is on cuda:0", "b is on cuda:1"},
       [](Call& x) {
         x.a.dl.device = {kDLCUDA, 0}, x.b.dl.device = {kDLCUDAManaged, 1};
       }},
      {"unknown dtype",
       type,
       {"a has dtype uint8", "float32"},
       [](Call& x) {
         x.a.dl.dtype = {kDLUInt, 8, 1};
       }},
      {"vector lanes", type, {"b has dtype float32x2"}, [](Call& x) { x.b.dl.dtype.lanes = 2; }},
      {"mixed dtypes",
       type,
       {"b has dtype float64", "expected float32 like a"},
       [](Call& x) { x.b.dl.dtype.bits = 64; }},
      {"bool outside or_and",
       type,
       {"a has dtype bool", "max_plus"},
       [](Call& x) {
         x.a.dl.dtype = x.b.dl.dtype = {kDLBool, 8, 1};
       }},
      {"or_and of floats",
       type,
       {"a has dtype float32", "or_and", "bool"},
       [](Call& x) { x.semiring = Semiring::or_and; }},
      {"negative threads", value, {"threads is -1"}, [](Call& x) { x.threads = x.options.threads = -1; }},
  };
}

TEST(Validate, FaultsOfTheOperands) {
  for (const Fault& fault : operand_faults()) {
    expect_fault(fault, &Call::matmul);
    expect_fault(fault, &Call::backward);
  }
}

// What holds for one written tensor holds for each: `of` picks it.
std::vector<Fault> written_faults(const std::string& name, Tensor& (*of)(Call&)) {
  const auto value = ErrorCode::invalid_value;
  return {
      {"shape",
       value,
       {name + " has shape (1,", "expected ("},
       [of](Call& x) {
         Tensor& t = of(x);
         t.shape[0] = 1;
       }},
      {"rank",
       value,
       {name + " has shape (", "expected ("},
       [of](Call& x) {
         Tensor& t = of(x);
         --t.dl.ndim;
       }},
      {"device",
       value,
       {"a is on the CPU", name + " is on cuda:1"},
       [of](Call& x) {
         of(x).dl.device = {kDLCUDA, 1};
       }},
      {"null data", value, {name, "null"}, [of](Call& x) { of(x).dl.data = nullptr; }},
      {"unaligned", value, {name, "aligned"}, [of](Call& x) { of(x).dl.byte_offset = 1; }},
      {"dtype",
       ErrorCode::invalid_type,
       {name + " has dtype int16", "expected"},
       [of](Call& x) { of(x).dl.dtype = dlpack_dtype<int16_t>(); }},
      {"unknown dtype",
       ErrorCode::invalid_type,
       {name + " has dtype complex64"},
       [of](Call& x) {
         of(x).dl.dtype = {kDLComplex, 64, 1};
       }},
  };
}
std::vector<Fault> layout_faults(const std::string& name, Tensor& (*of)(Call&)) {
  const auto value = ErrorCode::invalid_value;
  return {
      {"stride 0", value, {name, "stride 0 in axis 0"}, [of](Call& x) { of(x).strides[0] = 0; }},
      {"self-overlap",
       value,
       {name, "overlaps itself"},
       [of](Call& x) {
         Tensor& t = of(x);
         t.strides[0] = t.strides[1];
       }},
      {"overlaps a", value, {name + " overlaps a"}, [of](Call& x) { of(x).dl.data = x.a.memory.data() + 4; }},
      {"overlaps b", value, {name + " overlaps b"}, [of](Call& x) { of(x).dl.data = x.b.memory.data() + 76; }},
  };
}

template <class... Lists>
void expect_all(void (Call::*run)() const, const Lists&... lists) {
  for (const auto* list : {&lists...})
    for (const Fault& fault : *list) expect_fault(fault, run);
}

TEST(Validate, FaultsOfTheOutputs) {
  const auto out = +[](Call& x) -> Tensor& { return x.c; };
  const auto argmax = +[](Call& x) -> Tensor& { return x.argmax; };
  expect_all(&Call::matmul, written_faults("out", out), layout_faults("out", out), written_faults("argmax", argmax),
             layout_faults("argmax", argmax));
  expect_fault({"argmax overlaps out",
                ErrorCode::invalid_value,
                {"argmax overlaps out"},
                [](Call& x) { x.argmax.dl.data = x.c.memory.data(); }},
               &Call::matmul);
  expect_fault({"int64 argmax",
                ErrorCode::invalid_type,
                {"argmax has dtype int64", "int32"},
                [](Call& x) { x.argmax.dl.dtype.bits = 64; }},
               &Call::matmul);
}

TEST(Validate, FaultsOfTheGradients) {
  const auto grad_a = +[](Call& x) -> Tensor& { return x.grad_a; };
  const auto grad_b = +[](Call& x) -> Tensor& { return x.grad_b; };
  const auto grad_c = +[](Call& x) -> Tensor& { return x.grad_c; };
  const auto argmax = +[](Call& x) -> Tensor& { return x.argmax; };
  expect_all(&Call::backward, written_faults("grad_a", grad_a), layout_faults("grad_a", grad_a),
             written_faults("grad_b", grad_b), layout_faults("grad_b", grad_b), written_faults("grad_c", grad_c),
             written_faults("argmax", argmax));
  const auto value = ErrorCode::invalid_value;
  const Fault faults[] = {
      {"grad_a overlaps grad_c",
       value,
       {"grad_a overlaps grad_c"},
       [](Call& x) { x.grad_a.dl.data = x.grad_c.memory.data(); }},
      {"grad_b overlaps argmax",
       value,
       {"grad_b overlaps argmax"},
       [](Call& x) { x.grad_b.dl.data = x.argmax.memory.data(); }},
      {"grad_a overlaps grad_b",
       value,
       {"grad_a overlaps grad_b"},
       [](Call& x) { x.grad_a.dl.data = x.grad_b.memory.data() + 40; }},
      {"integers",
       ErrorCode::invalid_type,
       {"a has dtype int32", "gradients exist for"},
       [](Call& x) { x.a.dl.dtype = x.b.dl.dtype = dlpack_dtype<int32_t>(); }},
      {"booleans",
       ErrorCode::invalid_type,
       {"a has dtype bool", "gradients exist for"},
       [](Call& x) {
         x.a.dl.dtype = x.b.dl.dtype = {kDLBool, 8, 1}, x.semiring = Semiring::or_and;
       }},
  };
  for (const Fault& fault : faults) expect_fault(fault, &Call::backward);
}

TEST(Validate, FaultsOfTheOptions) {
  const auto value = ErrorCode::invalid_value;
  constexpr int64_t kMax = std::numeric_limits<int32_t>::max();
  const Fault faults[] = {
      {"negative offset", value, {"argmax_offset is -3"}, [](Call& x) { x.options.argmax_offset = -3; }},
      {"offset beyond int32",
       value,
       {"argmax_offset", "2147483647"},
       [](Call& x) { x.options.argmax_offset = kMax - 3; }},
      {"offset beyond int64",
       value,
       {"argmax_offset"},
       [](Call& x) { x.options.argmax_offset = std::numeric_limits<int64_t>::max(); }},
      {"offset without argmax",
       value,
       {"argmax_offset is 5"},
       [](Call& x) { x.options.argmax_offset = 5, x.with_argmax = false; }},
      {"K beyond int32",
       value,
       {"argmax_offset", "2147483648"},
       [](Call& x) {
         x.a.reshape({2, 3, kMax + 1}, {0, 0, 0}), x.b.reshape({kMax + 1, 5}, {0, 0});
       }},
  };
  for (const Fault& fault : faults) expect_fault(fault, &Call::matmul);
}

TEST(Validate, WhatIsAllowed) {
  const std::function<void(Call&)> cases[] = {
      [](Call&) {},
      [](Call& x) { x.options.argmax_offset = std::numeric_limits<int32_t>::max() - 4; },
      [](Call& x) { x.a.strides[0] = 0; },         // a broadcast input
      [](Call& x) { x.a.dl.data = x.b.dl.data; },  // inputs may share memory
      [](Call& x) {
        x.b.reshape({1, 4, 5}, {999, 5, 1});
      },  // the stride of a size-1 axis is noise
      [](Call& x) {
        x.a.dl.strides = nullptr;
        x.c.dl.strides = nullptr;
      },  // compact
      [](Call& x) {
        x.c.shape[1] = x.a.shape[1] = x.argmax.shape[1] = 0;
        x.c.dl.data = nullptr;
      },  // empty
      [](Call& x) {
        x.c.shape[1] = x.a.shape[1] = x.argmax.shape[1] = 0;
        x.c.strides = x.argmax.strides = {0, 0, 0};
      },  // empty arrays of NumPy have such strides
      [](Call& x) {
        x.a.reshape({1, 1, 4}, {8, 8, 2}), x.c.reshape({1, 1, 5}, {10, 10, 2});
        x.argmax.reshape({1, 1, 5}, {5, 5, 1});
        x.a.dl.data = x.c.memory.data() + sizeof(float);
      },  // out and a interleaved
  };
  for (size_t i = 0; i < std::size(cases); ++i) {
    Call call;
    cases[i](call);
    EXPECT_NO_THROW(call.matmul()) << "case " << i;
  }
}

TEST(Validate, ShapeOfTheProduct) {
  const struct {
    Shape a, b, c;
  } cases[] = {{{3}, {3}, {}},
               {{3}, {3, 2}, {2}},
               {{4, 3}, {3}, {4}},
               {{4, 3}, {3, 2}, {4, 2}},
               {{5, 1, 4, 3}, {6, 3, 2}, {5, 6, 4, 2}},
               {{7, 3}, {2, 5, 3, 1}, {2, 5, 7, 1}},
               {{2, 5, 7, 3}, {3}, {2, 5, 7}},
               {{3}, {2, 5, 3, 4}, {2, 5, 4}},
               {{0, 3}, {3, 2}, {0, 2}},
               {{4, 0}, {0, 2}, {4, 2}},
               {{0, 4, 3}, {1, 3, 2}, {0, 4, 2}}};
  for (const auto& [a, b, c] : cases) {
    const Tensor x(a, kFloat), y(b, kFloat);
    EXPECT_EQ(matmul_shape(x.dl, y.dl), c) << shape_name(a) << " x " << shape_name(b);
  }
}

}  // namespace
}  // namespace tropical::testing
