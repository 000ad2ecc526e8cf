#include "cases.h"

#include <algorithm>

namespace tropical::testing {
namespace {

template <class F>
std::vector<Pair> pairs_where(F&& wanted) {
  std::vector<Pair> pairs;
  const auto with_types = [&]<class S, class... T>(TypeList<T...>) {
    ((wanted.template operator()<S, T>() ? pairs.push_back({S::kId, TypeInfo<T>::kId}) : void()), ...);
  };
  [&]<class... S>(TypeList<S...>) { (with_types.template operator()<S>(AllTypes{}), ...); }(AllSemirings{});
  return pairs;
}

template <class T>
T from_double(double x) {
  if constexpr (is_half_v<T>)
    return from_float<T>(static_cast<float>(x));
  else
    return static_cast<T>(x);
}

template <class T>
T random_bits(Rng& rng) {
  if constexpr (std::is_same_v<T, bool>) {
    return rng.one_in(2);
  } else {
    const uint64_t bits = rng.bits();
    T x;
    std::memcpy(&x, &bits, sizeof x);
    return x;
  }
}

template <class T>
T uniform(Rng& rng) {
  if constexpr (std::is_same_v<T, bool>)
    return rng.one_in(3);
  else if constexpr (is_float_v<T>)
    return from_double<T>(8 * rng.unit() - 4);
  else
    return static_cast<T>(rng.below(2001) - 1000);
}

template <class T>
T nan(Rng& rng) {
  // Quiet and signalling, of both signs.
  const uint64_t pick = rng.bits();
  if constexpr (std::is_same_v<T, float16>)
    return {static_cast<uint16_t>(0x7c01 | (pick & 0x83fe))};
  else if constexpr (std::is_same_v<T, bfloat16>)
    return {static_cast<uint16_t>(0x7f81 | (pick & 0x807e))};
  else if constexpr (std::is_same_v<T, float>)
    return detail::bits_to<float>(0x7f800001u | (static_cast<uint32_t>(pick) & 0x807ffffeu));
  else if constexpr (std::is_same_v<T, double>)
    return detail::bits_to<double>(0x7ff0000000000001ULL | (pick & 0x800ffffffffffffeULL));
  else
    return uniform<T>(rng);
}

template <class T>
T infinity_or_small(Rng& rng) {
  if constexpr (std::is_same_v<T, bool>) {
    return rng.one_in(2);
  } else if constexpr (is_float_v<T>) {
    const T list[] = {lowest<T>(),        highest<T>(),      from_double<T>(0),  from_double<T>(-0.0),
                      from_double<T>(-1), from_double<T>(2), from_double<T>(.5), from_double<T>(-3)};
    return rng.pick(list);
  } else {
    const T list[] = {
        lowest<T>(), highest<T>(), static_cast<T>(lowest<T>() + 1), static_cast<T>(highest<T>() - 1), T{0}, T{1},
        T{-1},       T{7}};
    return rng.pick(list);
  }
}

template <class T>
T limit(Rng& rng) {
  if constexpr (std::is_same_v<T, bool>) {
    return rng.one_in(2);
  } else if constexpr (is_float_v<T>) {
    // Half-way cases of f16 (2048 + .25, .5) and bf16 (256 + 1), the largest and smallest numbers, subnormals.
    constexpr double kTop = std::is_same_v<T, double>    ? 1.7976931348623157e308
                            : std::is_same_v<T, float16> ? 65504.0
                                                         : 3.3895313892515355e38;
    constexpr double kTiny = std::is_same_v<T, double> ? 0x1p-1074 : std::is_same_v<T, float16> ? 0x1p-24 : 0x1p-133;
    const double list[] = {2048, .25, .5, .75, 256, 1, -1, kTop, -kTop, kTop / 2, kTiny, -kTiny, 3 * kTiny, 65472, 16};
    return from_double<T>(rng.pick(list));
  } else {
    // Where kernels change from the plain to the careful one, and what stands for infinity in them.
    constexpr int64_t kEdge = sizeof(T) == 2 ? int64_t{1} << 12 : sizeof(T) == 4 ? int64_t{1} << 28 : int64_t{1} << 60;
    const int64_t sign = rng.one_in(2) ? 1 : -1;
    const int64_t list[] = {kEdge, kEdge - 1, kEdge + 1, 2 * kEdge, 4 * kEdge - 1, 4 * kEdge - 2, kEdge / 2, 0, 3};
    return rng.one_in(9) ? (rng.one_in(2) ? lowest<T>() : highest<T>()) : static_cast<T>(sign * rng.pick(list));
  }
}

template <class S, class T>
T draw(Fill kind, Rng& rng) {
  switch (kind) {
    case Fill::uniform:
    case Fill::outlier:
    case Fill::nan_lines:
      return uniform<T>(rng);
    case Fill::few:
      return from_double<T>(static_cast<double>(rng.below(4) - (std::is_same_v<T, bool> ? 0 : 1)));
    case Fill::signed_zeros:
      return rng.one_in(4) ? from_double<T>(rng.one_in(2) ? 1 : -1) : from_double<T>(rng.one_in(2) ? 0.0 : -0.0);
    case Fill::nans:
      return rng.one_in(20) ? nan<T>(rng) : uniform<T>(rng);
    case Fill::infinities:
      return infinity_or_small<T>(rng);
    case Fill::masked:
      return rng.one_in(2) ? S::template zero<T>() : uniform<T>(rng);
    case Fill::limits:
      return limit<T>(rng);
    case Fill::bits:
      return random_bits<T>(rng);
  }
  return {};
}

template <class S, class T>
void fill_typed(HostTensor& x, Fill kind, Lines lines, Rng& rng) {
  const int64_t count = x.count();
  const int64_t width = x.shape().empty() ? 1 : x.shape().back();
  for (int64_t i = 0; i < count; ++i) {
    const int64_t line = lines == Lines::rows ? i / width : i % width;
    if (kind == Fill::nan_lines && line % 5 == 2)
      x.at<T>(i) = nan<T>(rng);
    else if (kind == Fill::masked && line % 5 == 2)
      x.at<T>(i) = S::template zero<T>();
    else
      x.at<T>(i) = draw<S, T>(kind, rng);
  }
  if (kind == Fill::outlier && count) x.at<T>(rng.below(count)) = infinity_or_small<T>(rng);
}

constexpr int64_t kSizes[] = {1,  2,  3,  4,  5,  7,  8,  9,  12, 13, 15, 16, 17, 20,  23,  24,  25,  31,
                              32, 33, 40, 47, 48, 49, 63, 64, 65, 80, 95, 96, 97, 127, 128, 129, 193, 257};
constexpr int64_t kDepths[] = {1, 2, 3, 4, 15, 16, 17, 31, 33, 63, 64, 65, 96, 100, 255, 257, 511, 1024, 1030, 2100};

}  // namespace

std::vector<Pair> supported_pairs() {
  return pairs_where([]<class S, class T>() { return supported_v<S, T>; });
}
std::vector<Pair> differentiable_pairs() {
  return pairs_where([]<class S, class T>() { return differentiable_v<S, T>; });
}
std::string pair_text(Pair pair) { return std::string(semiring_name(pair.semiring)) + "_" + dtype_name(pair.dtype); }

const char* fill_name(Fill fill) {
  switch (fill) {
    case Fill::uniform:
      return "uniform";
    case Fill::few:
      return "few";
    case Fill::signed_zeros:
      return "signed_zeros";
    case Fill::nans:
      return "nans";
    case Fill::nan_lines:
      return "nan_lines";
    case Fill::infinities:
      return "infinities";
    case Fill::masked:
      return "masked";
    case Fill::limits:
      return "limits";
    case Fill::outlier:
      return "outlier";
    case Fill::bits:
      return "bits";
  }
  return "?";
}
const char* layout_name(Layout layout) {
  switch (layout) {
    case Layout::row_major:
      return "row_major";
    case Layout::column_major:
      return "column_major";
    case Layout::step2:
      return "step2";
    case Layout::reversed:
      return "reversed";
    case Layout::padded:
      return "padded";
    case Layout::shuffled:
      return "shuffled";
    case Layout::broadcast:
      return "broadcast";
  }
  return "?";
}

void fill(HostTensor& x, Fill kind, Pair pair, Lines lines, Rng& rng) {
  visit(pair.semiring, pair.dtype, [&]<class S, class T>() { fill_typed<S, T>(x, kind, lines, rng); });
}

const std::vector<BatchCase>& batch_cases() {
  static const std::vector<BatchCase> cases = {{{}, {}},
                                               {{}, {}},
                                               {{}, {}},
                                               {{}, {}},
                                               {{3}, {3}},
                                               {{3}, {}},
                                               {{}, {2}},
                                               {{1}, {4}},
                                               {{2, 3}, {3}},
                                               {{2, 1}, {1, 3}},
                                               {{2, 2, 2}, {2, 2, 2}},
                                               {{0}, {1}}};
  return cases;
}

MatmulShape random_shape(Rng& rng, int64_t work) {
  for (;;) {
    const BatchCase batch = rng.pick(batch_cases());
    const int64_t m = rng.pick(kSizes), n = rng.pick(kSizes), k = rng.pick(kDepths);
    const Shape lead = broadcast(batch);
    if (m * n * k * element_count(lead) > work) continue;
    return {with_matrix(batch.a, m, k), with_matrix(batch.b, k, n), with_matrix(lead, m, n)};
  }
}

Shape with_matrix(const Shape& batch, int64_t rows, int64_t cols) {
  Shape s = batch;
  s.push_back(rows);
  s.push_back(cols);
  return s;
}

Shape broadcast(const BatchCase& batch) {
  Shape s(std::max(batch.a.size(), batch.b.size()), 1);
  for (const Shape* x : {&batch.a, &batch.b})
    for (size_t d = 0; d < x->size(); ++d) {
      int64_t& size = s[s.size() - x->size() + d];
      if ((*x)[d] != 1) size = (*x)[d];
    }
  return s;
}

std::string shape_name(const Shape& shape) {
  std::string s;
  for (const int64_t size : shape) s += (s.empty() ? "" : "x") + std::to_string(size);
  return s;
}

}  // namespace tropical::testing
