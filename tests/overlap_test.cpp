// The exact aliasing tests against sets of bytes.
#include "overlap.h"

#include <gtest/gtest.h>

#include <set>

#include "host_tensor.h"

namespace tropical::testing {
namespace {

alignas(64) char memory[1 << 12];

struct View {
  Shape shape, strides;
  int64_t offset = 0;  // bytes
  uint8_t bits = 32;

  DLTensor dlpack() const {
    DLTensor t{};
    t.data = memory + sizeof memory / 2;
    t.byte_offset = static_cast<uint64_t>(offset);
    t.device = {kDLCPU, 0};
    t.ndim = static_cast<int32_t>(shape.size());
    t.dtype = {kDLInt, bits, 1};
    t.shape = const_cast<int64_t*>(shape.data());
    t.strides = const_cast<int64_t*>(strides.data());
    return t;
  }
  // The first byte of every element.
  std::vector<int64_t> elements() const {
    std::vector<int64_t> at;
    for (int64_t i = 0; i < element_count(shape); ++i) {
      int64_t o = 0, rest = i;
      for (size_t d = shape.size(); d-- > 0; rest /= shape[d]) o += rest % shape[d] * strides[d];
      at.push_back(offset + o * bits / 8);
    }
    return at;
  }
  std::string text() const {
    std::string s = "offset " + std::to_string(offset) + " bits " + std::to_string(bits);
    for (size_t d = 0; d < shape.size(); ++d) s += " " + std::to_string(shape[d]) + ":" + std::to_string(strides[d]);
    return s;
  }
};

View random_view(Rng& rng) {
  View v;
  constexpr int kBits[] = {8, 16, 32, 64};
  v.bits = static_cast<uint8_t>(rng.pick(kBits));
  v.offset = rng.below(40);
  for (int64_t d = rng.below(4); d > 0; --d) {
    v.shape.push_back(rng.one_in(15) ? 0 : 1 + rng.below(5));
    v.strides.push_back(rng.below(23) - 11);
  }
  return v;
}

TEST(Overlap, AgreesWithSetsOfBytes) {
  Rng rng(3);
  int seen[2] = {};
  for (int i = 0; i < 60'000; ++i) {
    const View x = random_view(rng), y = random_view(rng);
    std::set<int64_t> bytes;
    for (const int64_t at : x.elements())
      for (int b = 0; b < x.bits / 8; ++b) bytes.insert(at + b);
    bool expected = false;
    for (const int64_t at : y.elements())
      for (int b = 0; b < y.bits / 8; ++b) expected |= bytes.contains(at + b);
    ASSERT_EQ(overlaps(x.dlpack(), y.dlpack()), expected) << x.text() << " | " << y.text();
    ASSERT_EQ(overlaps(y.dlpack(), x.dlpack()), expected) << y.text() << " | " << x.text();
    ++seen[expected];
  }
  EXPECT_GT(std::min(seen[0], seen[1]), 5'000);  // both answers are exercised
}

TEST(Overlap, ItselfAgreesWithSetsOfBytes) {
  Rng rng(4);
  int seen[2] = {};
  for (int i = 0; i < 60'000; ++i) {
    const View x = random_view(rng);
    std::set<int64_t> bytes;
    bool expected = false;
    for (const int64_t at : x.elements())
      for (int b = 0; b < x.bits / 8; ++b) expected |= !bytes.insert(at + b).second;
    ASSERT_EQ(overlaps_itself(x.dlpack()), expected) << x.text();
    ++seen[expected];
  }
  EXPECT_GT(std::min(seen[0], seen[1]), 5'000);
}

// Sizes of real arrays must be answered at once, too. Nothing is read, so the memory need not exist.
TEST(Overlap, LargeViews) {
  constexpr int64_t n = 100'000;
  const View whole{{n, n}, {n, 1}};
  const View left{{n, n / 2}, {n, 1}}, right{{n, n / 2}, {n, 1}, 4 * n / 2};
  const View even{{n / 2, n / 2}, {2 * n, 2}}, odd{{n / 2, n / 2}, {2 * n, 2}, 4};
  const View columns{{n / 2, n}, {2, n}}, other_columns{{n / 2, n}, {2, n}, 4};
  EXPECT_TRUE(overlaps(whole.dlpack(), right.dlpack()));
  EXPECT_FALSE(overlaps(left.dlpack(), right.dlpack()));
  EXPECT_FALSE(overlaps(even.dlpack(), odd.dlpack()));
  EXPECT_FALSE(overlaps(columns.dlpack(), other_columns.dlpack()));
  EXPECT_TRUE(overlaps(even.dlpack(), columns.dlpack()));
  for (const View& v : {whole, left, even, columns}) EXPECT_FALSE(overlaps_itself(v.dlpack())) << v.text();
  EXPECT_TRUE(overlaps_itself(View{{n, n}, {n - 1, 1}}.dlpack()));
  EXPECT_TRUE(overlaps_itself(View{{n, n}, {1, 1}}.dlpack()));
}

TEST(Overlap, CompactStridesMayBeMissing) {
  View x{{3, 4}, {4, 1}}, y{{3, 4}, {4, 1}, 4 * 12};
  DLTensor dx = x.dlpack(), dy = y.dlpack();
  dx.strides = dy.strides = nullptr;
  EXPECT_FALSE(overlaps(dx, dy));
  EXPECT_FALSE(overlaps_itself(dx));
  dy.byte_offset -= 4;
  EXPECT_TRUE(overlaps(dx, dy));
}

}  // namespace
}  // namespace tropical::testing
