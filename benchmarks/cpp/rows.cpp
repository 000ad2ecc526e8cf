#include "rows.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "problem.h"
#include "register_limit.h"

namespace tropical::bench {
namespace {

constexpr int64_t kLimitSteps = 10'000;
constexpr double kLimitSeconds = 0.02;
constexpr double kScanSeconds = 0.02;

Timed limit_of(Loop loop) {
  const RegisterLoop& limit = register_limit(loop, build_info().isa);
  return {[&limit] { limit.run(kLimitSteps); }, limit.pairs_per_step * kLimitSteps, kLimitSeconds};
}

Comparison values_to_limit(const ProblemSpec& spec, Loop loop) {
  auto problem = std::make_shared<Problem>(spec);
  return {limit_of(loop), {[problem] { problem->values(); }, problem->pairs()}, [problem] { problem->check_values(); }};
}

Comparison argmax_to_values(const ProblemSpec& spec) {
  auto problem = std::make_shared<Problem>(spec);
  return {{[problem] { problem->values(); }, problem->pairs()},
          {[problem] { problem->argmax(); }, problem->pairs()},
          [problem] { problem->check_argmax(); }};
}

Comparison two_threads_to_one(const ProblemSpec& spec) {
  auto problem = std::make_shared<Problem>(spec);
  const auto on = [&](int threads) {
    Timed timed{[problem, threads] { problem->values(threads); }, problem->pairs()};
    timed.threads = 2;  // both by the wall clock
    return timed;
  };
  return {on(1), on(2), [problem] { problem->check_values(); }};
}

Comparison special_to_clean(const ProblemSpec& clean, Fill fill) {
  ProblemSpec with_special = clean;
  with_special.fill = fill;
  auto base = std::make_shared<Problem>(clean), subject = std::make_shared<Problem>(with_special);
  return {{[base] { base->values(); }, base->pairs()}, {[subject] { subject->values(); }, subject->pairs()}, [subject] {
            subject->check_values();
          }};
}

Comparison scan_to_values(const ProblemSpec& spec) {
  auto problem = std::make_shared<Problem>(spec);
  return {{[problem] { problem->values(); }, problem->pairs()},
          {[problem] { problem->scan(); }, 0, kScanSeconds},
          [problem] { problem->check_scan(); }};
}

Comparison backward_to_values(const ProblemSpec& spec) {
  auto problem = std::make_shared<Problem>(spec);
  problem->argmax();  // the indices to send gradients through
  return {{[problem] { problem->values(); }, problem->pairs()}, {[problem] { problem->backward(); }}, [problem] {
            problem->check_values();
          }};
}

ProblemSpec cube(int64_t n, Semiring semiring = Semiring::max_plus, DType dtype = DType::f32, Fill fill = {}) {
  return {semiring, dtype, n, n, n, 1, fill};
}

Row share_row(const std::string& group, const ProblemSpec& spec, Loop loop, double target) {
  return {group + "/" + spec_name(spec), Quantity::share, target, [spec, loop] { return values_to_limit(spec, loop); }};
}

void add_values(std::vector<Row>& rows) {
  struct Type {
    DType dtype;
    Loop loop;
    double range;
  };
  for (const Type& t : {Type{DType::f32, Loop::add_max_f32, 1}, Type{DType::f64, Loop::add_max_f64, 1},
                        Type{DType::i32, Loop::add_max_i32, 1000}, Type{DType::i64, Loop::add_max_i64, 1000}})
    for (const auto& [n, target] : {std::pair{256, 0.90}, {512, 0.90}, {1000, 0.88}, {1024, 0.90}, {2048, 0.88}})
      rows.push_back(share_row("values", cube(n, Semiring::max_plus, t.dtype, {t.range}), t.loop, target));
  rows.push_back(share_row("values", cube(1024, Semiring::max_mul), Loop::mul_max_f32, 0.88));
  rows.push_back(share_row("values", cube(1024, Semiring::max_min), Loop::min_max_f32, 0.88));
  rows.push_back(share_row("values", cube(1024, Semiring::max_plus, DType::i16, {1000}), Loop::add_max_i16, 0.75));
  rows.push_back(share_row("values", cube(1024, Semiring::max_plus, DType::f16), Loop::add_max_f32, 0.85));
  rows.push_back(share_row("values", cube(1024, Semiring::max_plus, DType::bf16), Loop::add_max_f32, 0.85));
}

void add_shapes(std::vector<Row>& rows) {
  struct Shape {
    int64_t m, k, n;
    double target;
  };
  for (const Shape& s : {Shape{1024, 64, 1024, 0.90}, Shape{64, 1024, 64, 0.90}, Shape{4096, 16, 4096, 0.80},
                         Shape{4096, 4096, 16, 0.70}, Shape{16, 4096, 4096, 0.60}})
    rows.push_back(share_row("values", {Semiring::max_plus, DType::f32, s.m, s.k, s.n}, Loop::add_max_f32, s.target));
}

// Batches that stay in the second-level cache while they are repeated.
void add_batches(std::vector<Row>& rows) {
  constexpr int64_t kHotBytes = 800 * 1024;
  for (const auto& [n, target] : {std::pair{5, 0.60},
                                  {7, 0.60},
                                  {8, 0.60},
                                  {12, 0.60},
                                  {16, 0.80},
                                  {20, 0.60},
                                  {24, 0.60},
                                  {32, 0.80},
                                  {48, 0.60},
                                  {64, 0.90},
                                  {100, 0.60}}) {
    ProblemSpec spec = cube(n);
    spec.batch = std::clamp<int64_t>(kHotBytes / (3 * 4 * int64_t{n} * n), 1, 256);
    rows.push_back(share_row("batch", spec, Loop::add_max_f32, target));
  }
}

void add_argmax(std::vector<Row>& rows) {
  for (const auto& [n, target] : {std::pair{512, 1.25}, {1024, 1.20}, {2048, 1.20}}) {
    const ProblemSpec spec = cube(n);
    rows.push_back({"argmax/" + spec_name(spec), Quantity::ratio, target, [spec] { return argmax_to_values(spec); }});
  }
}

void add_threads(std::vector<Row>& rows) {
  for (const ProblemSpec& spec :
       {cube(1024), cube(2048), ProblemSpec{Semiring::max_plus, DType::f32, 64, 64, 64, 256, {}}})
    rows.push_back(
        {"threads/2/" + spec_name(spec), Quantity::speedup, 1.9, [spec] { return two_threads_to_one(spec); }, "", 2});
}

void add_special(std::vector<Row>& rows) {
  const ProblemSpec clean = cube(1024);
  const auto add = [&](const std::string& name, double target, Fill fill) {
    rows.push_back({"special/" + name + "/" + spec_name(clean), Quantity::ratio, target,
                    [clean, fill] { return special_to_clean(clean, fill); }});
  };
  rows.push_back(
      {"special/scan/" + spec_name(clean), Quantity::ratio, 0.02, [clean] { return scan_to_values(clean); }});
  add("infinity_10%", 0, {1, Special::infinity, 0.1});
  add("nan_1%", 1.10, {1, Special::nan, 1e-2});
  add("nan_1e-6", 0, {1, Special::nan, 1e-6});
}

// Element types and ranges that take other kernels, against the loop of the type that they compute in.
void add_paths(std::vector<Row>& rows) {
  const auto max_plus = Semiring::max_plus;
  rows.push_back(share_row("paths/bits", cube(1024, Semiring::or_and, DType::boolean), Loop::and_or, 0));
  rows.push_back(share_row("paths/mapped", cube(1024, max_plus, DType::i32, {1000, Special::infinity, 0.1}),
                           Loop::add_max_i32, 0));
  rows.push_back(share_row("paths/wide", cube(1024, max_plus, DType::i32, {0x1p30}), Loop::add_max_i64, 0));
  rows.push_back(share_row("paths/careful", cube(512, max_plus, DType::i64, {0x1p62}), Loop::add_max_i64, 0));
}

// Which instruction should add: above 1, the multiply-add.
void add_limits(std::vector<Row>& rows) {
  const auto add = [&](const std::string& type, Loop base, Loop subject) {
    rows.push_back({"limit/fma_for_add/" + type, Quantity::speedup, 0, [base, subject] {
                      return Comparison{limit_of(base), limit_of(subject), [] {}};
                    }});
  };
  add("f32", Loop::add_max_f32, Loop::fma_max_f32);
  add("f64", Loop::add_max_f64, Loop::fma_max_f64);
}

}  // namespace

std::vector<Row> all_rows() {
  std::vector<Row> rows;
  add_values(rows);
  add_shapes(rows);
  add_batches(rows);
  add_argmax(rows);
  add_threads(rows);
  Row avx2 = share_row("isa/AVX2", cube(1024), Loop::add_max_f32, 0.85);
  avx2.isa = "AVX2";
  rows.push_back(std::move(avx2));
  add_special(rows);
  const ProblemSpec spec = cube(1024);
  rows.push_back({"backward/" + spec_name(spec), Quantity::ratio, 0, [spec] { return backward_to_values(spec); }});
  add_paths(rows);
  add_limits(rows);
  add_filter(rows);
  return rows;
}

}  // namespace tropical::bench
