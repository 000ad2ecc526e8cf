#include "tropical_gemm/permute.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "params.h"
#include "tropical_gemm/error.h"

namespace tropical {
namespace {

DLTensor tensor(void* data, std::vector<int64_t>& shape, std::vector<int64_t>& strides, int bytes) {
  DLTensor t{};
  t.data = data;
  t.device = {kDLCPU, 0};
  t.ndim = static_cast<int32_t>(shape.size());
  t.dtype = {kDLUInt, static_cast<uint8_t>(bytes == 16 ? 64 : 8 * bytes), static_cast<uint16_t>(bytes == 16 ? 2 : 1)};
  t.shape = shape.data();
  t.strides = strides.data();
  return t;
}

// A random view with gaps, reversed and repeated axes, and its permutation element by element.
void check(std::mt19937& random, int bytes, std::vector<int64_t> shape, bool plain, int threads) {
  const auto pick = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  const int ndim = static_cast<int>(shape.size());
  std::vector<int> memory(shape.size()), axes(shape.size());
  for (int d = 0; d < ndim; ++d) memory[static_cast<size_t>(d)] = axes[static_cast<size_t>(d)] = d;
  std::shuffle(memory.begin(), memory.end(), random);
  std::shuffle(axes.begin(), axes.end(), random);
  std::vector<int64_t> strides(shape.size());
  int64_t span = 1, first = 0;
  for (const int d : memory) {
    const auto at = static_cast<size_t>(d);
    const int kind = plain ? 9 : pick(10);
    strides[at] = kind == 0 ? 0 : kind == 1 ? -span : span;
    if (kind == 1) first += span * (shape[at] - 1);
    if (kind != 0) span *= shape[at];
    if (kind == 2) span += 1;
  }
  std::vector<unsigned char> source(static_cast<size_t>(span * bytes) + 16);
  for (auto& x : source) x = static_cast<unsigned char>(random());
  int64_t count = 1;
  std::vector<int64_t> to, to_strides(shape.size());
  for (const int d : axes) to.push_back(shape[static_cast<size_t>(d)]), count *= to.back();
  int64_t step = 1;
  for (size_t d = to.size(); d-- > 0; step *= to[d]) to_strides[d] = step;
  std::vector<unsigned char> made(static_cast<size_t>(count * bytes) + 1, 0xAB);
  PermuteOptions options;
  options.threads = threads;
  permute(tensor(source.data() + first * bytes, shape, strides, bytes), axes,
          tensor(made.data(), to, to_strides, bytes), options);
  std::vector<int64_t> at(shape.size());
  for (int64_t i = 0; i < count; ++i) {
    int64_t index = i, from = first;
    for (size_t d = to.size(); d-- > 0; index /= to[d]) from += index % to[d] * strides[static_cast<size_t>(axes[d])];
    ASSERT_EQ(0, std::memcmp(made.data() + i * bytes, source.data() + from * bytes, static_cast<size_t>(bytes)))
        << "element " << i << " of " << bytes << " bytes";
  }
  EXPECT_EQ(made.back(), 0xAB);
}

TEST(Permute, AnyShapesAndStrides) {
  std::mt19937 random(1);
  for (int round = 0; round < 400; ++round) {
    const int bytes = 1 << random() % 5, ndim = static_cast<int>(random() % 7);
    std::vector<int64_t> shape;
    for (int64_t d = 0, count = 1; d < ndim && count < 2000; ++d, count *= shape.back())
      shape.push_back(random() % 4 == 0 ? 1 + random() % 70 : 1 + random() % 5);
    check(random, bytes, shape, round % 2 == 0, 1 + round % 3);
  }
}

TEST(Permute, ManyAxes) {
  std::mt19937 random(2);
  for (int round = 0; round < 40; ++round) check(random, 1 << round % 5, std::vector<int64_t>(15, 2), true, 2);
  std::vector<int64_t> shape(64, 1);
  shape[3] = shape[40] = shape[63] = 3;
  check(random, 4, shape, false, 1);
}

TEST(Permute, LongAxes) {
  std::mt19937 random(3);
  for (const auto& shape : std::vector<std::vector<int64_t>>{
           {1000, 300}, {5, 1000, 3}, {20000, 2}, {2, 20000}, {3, 2, 5000}, {70, 70, 70}, {100, 4, 100}, {65, 17, 129}})
    for (int round = 0; round < 6; ++round) check(random, 1 << round % 5, shape, true, 1 + round % 2);
}

TEST(Permute, EmptyAndScalar) {
  std::mt19937 random(4);
  check(random, 8, {}, true, 0);
  std::vector<int64_t> shape{0, 3}, to{3, 0}, strides{3, 1};
  const int axes[] = {1, 0};
  permute(tensor(nullptr, shape, strides, 4), axes, tensor(nullptr, to, strides, 4));
}

TEST(Permute, BadArguments) {
  float data[6] = {}, other[6] = {};
  std::vector<int64_t> shape{2, 3}, strides{3, 1}, turned{3, 2}, turned_strides{2, 1}, wrong{1, 3};
  const DLTensor x = tensor(data, shape, strides, 4), y = tensor(other, turned, turned_strides, 4);
  const auto fails = [&](const DLTensor& from, std::vector<int> axes, const DLTensor& to, const char* text) {
    try {
      permute(from, axes, to);
      FAIL() << "expected: " << text;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what();
    }
  };
  fails(x, {1, 1}, y, "axes holds 1, expected each axis of x, 0 to 1, once");
  fails(x, {1}, y, "axes has 1 elements, expected 2");
  fails(x, {0, 1}, y, "out has shape (3, 2), expected (2, 3)");
  fails(x, {1, 0}, tensor(other, turned, wrong, 4), "expected a row-major array");
  fails(x, {1, 0}, tensor(data, turned, turned_strides, 4), "out overlaps x in memory");
  fails(x, {1, 0}, tensor(other, turned, turned_strides, 8), "out has another dtype than x");
  fails(tensor(data, shape, strides, 3), {1, 0}, y, "x has elements of 24 bits");
}

}  // namespace
}  // namespace tropical
