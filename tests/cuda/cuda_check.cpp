// Products and gradients on the GPU against the CPU library, bit by bit. A plain program, so that a bare machine with
// CMake and nvcc builds it: cuda_check LIBRARY [--seconds S] [--seed N] [--only TEXT] [--large]
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>

#include "../cases.h"
#include "cpu/backend.h"
#include "session.h"
#include "validate.h"

namespace tropical::testing {
namespace {

// A copy of a host tensor's whole storage on the device.
class Mirror {
 public:
  explicit Mirror(HostTensor& host) : host_(host), bytes_(host.storage().size() * sizeof(uint64_t)) {
    cuda::Status status;
    data_ = backend->allocate(bytes_, &queue, &status);
    check(status, "allocate");
  }
  ~Mirror() {
    cuda::Status status;
    backend->release(data_, &queue, &status);
    check(status, "release");
  }
  Mirror(const Mirror&) = delete;
  Mirror& operator=(const Mirror&) = delete;
  void upload() { check(cudaMemcpyAsync(data_, host_.storage().data(), bytes_, cudaMemcpyDefault, stream), "upload"); }
  void scramble() { check(cudaMemsetAsync(data_, 0x11, bytes_, stream), "memset"); }
  void download(HostTensor& to) {
    check(cudaMemcpyAsync(to.storage().data(), data_, bytes_, cudaMemcpyDefault, stream), "download");
    check(cudaStreamSynchronize(stream), "synchronize");
  }
  // The device address of what `data` points to on the host.
  void* operator()(void* data) const {
    return static_cast<char*>(data_) + (static_cast<char*>(data) - reinterpret_cast<char*>(host_.storage().data()));
  }

 private:
  HostTensor& host_;
  size_t bytes_;
  void* data_ = nullptr;
};

class Scratch {
 public:
  explicit Scratch(size_t bytes) {
    cuda::Status status;
    if (bytes) data_ = backend->allocate(bytes, &queue, &status);
    check(status, "allocate scratch");
    // Kernels must not rely on what scratch memory holds.
    if (bytes) check(cudaMemsetAsync(data_, 0xa5, bytes, stream), "memset");
  }
  ~Scratch() {
    cuda::Status status;
    backend->release(data_, &queue, &status);
    check(status, "release");
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  void* data() const { return data_; }

 private:
  void* data_ = nullptr;
};

std::string differences(DType dtype, HostTensor& got, HostTensor& expected) {
  std::string text;
  int64_t count = 0;
  visit_dtype(dtype, [&]<class T>() {
    for (int64_t i = 0; i < expected.count(); ++i)
      if (std::memcmp(&got.at<T>(i), &expected.at<T>(i), sizeof(T)) != 0 && count++ < 3)
        text += " [" + std::to_string(i) + "] got " + std::to_string(widen(got.at<T>(i))) + " expected " +
                std::to_string(widen(expected.at<T>(i)));
  });
  return count ? std::to_string(count) + " of " + std::to_string(expected.count()) + " differ:" + text
               : "bytes between the elements were written";
}

struct Mode {
  const char* name;
  bool argmax, accumulate;
  int64_t offset;
};
constexpr Mode kModes[] = {{"values", false, false, 0},
                           {"argmax", true, false, 0},
                           {"argmax+offset", true, false, 1000},
                           {"accumulate", false, true, 0},
                           {"accumulate+argmax", true, true, 7}};

struct Case {
  Pair pair;
  MatmulShape shape;
  Layout a = Layout::row_major, b = Layout::row_major, c = Layout::row_major, argmax = Layout::row_major;
  Fill fill_a = Fill::uniform, fill_b = Fill::uniform;
  Mode mode = kModes[0];
  bool captured = false;

  std::string text() const {
    return pair_text(pair) + " a " + shape_name(shape.a) + " " + layout_name(a) + " " + fill_name(fill_a) + ", b " +
           shape_name(shape.b) + " " + layout_name(b) + " " + fill_name(fill_b) + ", c " + layout_name(c) +
           ", argmax " + layout_name(argmax) + ", " + mode.name + (captured ? ", captured" : "");
  }
};

void report(const std::string& test, const std::string& what) {
  if (++failures <= 60) std::printf("FAILED %s: %s\n", test.c_str(), what.c_str());
  std::fflush(stdout);
}

void product(const Case& test, Rng& rng) {
  const Pair pair = test.pair;
  HostTensor a(pair.dtype, test.shape.a, test.a, rng), b(pair.dtype, test.shape.b, test.b, rng);
  HostTensor c(pair.dtype, test.shape.c, test.c, rng), argmax(DType::i32, test.shape.c, test.argmax, rng);
  fill(a, test.fill_a, pair, Lines::rows, rng);
  fill(b, test.fill_b, pair, Lines::columns, rng);
  fill(c, test.fill_a, pair, Lines::rows, rng);
  HostTensor expected = c, expected_argmax = argmax;
  MatmulOptions options;
  options.accumulate = test.mode.accumulate;
  options.argmax_offset = test.mode.offset;
  const DLTensor da = a.dlpack(), db = b.dlpack(), dc = c.dlpack(), dargmax = argmax.dlpack(), de = expected.dlpack(),
                 de_argmax = expected_argmax.dlpack();
  cpu::matmul(validate_matmul(pair.semiring, da, db, de, test.mode.argmax ? &de_argmax : nullptr, options));

  MatmulParams p = validate_matmul(pair.semiring, da, db, dc, test.mode.argmax ? &dargmax : nullptr, options);
  Mirror ma(a), mb(b), mc(c), margmax(argmax);
  p.a.data = ma(p.a.data), p.b.data = mb(p.b.data), p.c.data = mc(p.c.data);
  if (p.argmax.data) p.argmax.data = margmax(p.argmax.data);
  // Small products too go through bounds, where such a path exists.
  if (rng.one_in(2)) p.filtering = Filtering::always;
  cuda::Status status;
  const size_t bytes = backend->matmul_workspace(&p, queue.device, &status);
  check(status, test.text().c_str());
  Scratch scratch(bytes);
  run(
      test.captured, [&] { ma.upload(), mb.upload(), mc.upload(), margmax.upload(); },
      [&] { ma.scramble(), mb.scramble(), mc.scramble(), margmax.scramble(); },
      [&] {
        backend->matmul(&p, &queue, scratch.data(), &status);
        check(status, test.text().c_str());
      });
  HostTensor got = c, got_argmax = argmax;
  mc.download(got);
  margmax.download(got_argmax);
  if (!got.same_bytes(expected)) report(test.text(), "values: " + differences(pair.dtype, got, expected));
  if (!got_argmax.same_bytes(expected_argmax))
    report(test.text(), "argmax: " + differences(DType::i32, got_argmax, expected_argmax));
}

// Elements are small integers, so that every order of additions gives the same sum.
void gradient(const Case& test, Rng& rng) {
  const Pair pair = test.pair;
  HostTensor a(pair.dtype, test.shape.a, test.a == Layout::broadcast ? Layout::padded : test.a, rng),
      b(pair.dtype, test.shape.b, test.b == Layout::broadcast ? Layout::padded : test.b, rng);
  HostTensor grad(pair.dtype, test.shape.c, test.c, rng);
  const bool wide = rng.one_in(2);
  HostTensor argmax(wide ? DType::i64 : DType::i32, test.shape.c, test.argmax, rng);
  fill(a, Fill::few, pair, Lines::rows, rng);
  fill(b, Fill::few, pair, Lines::columns, rng);
  fill(grad, Fill::few, pair, Lines::rows, rng);
  const int64_t k = test.shape.a.back(), spread = std::max<int64_t>(rng.one_in(3) ? std::min<int64_t>(k, 3) : k, 1);
  for (int64_t i = 0; i < argmax.count(); ++i) {
    const int64_t index = rng.one_in(9) ? rng.below(k + 4) - 2 : rng.below(spread);
    if (wide)
      argmax.at<int64_t>(i) = index;
    else
      argmax.at<int32_t>(i) = static_cast<int32_t>(index);
  }
  HostTensor ga(pair.dtype, test.shape.a, test.c, rng), gb(pair.dtype, test.shape.b, test.argmax, rng);
  HostTensor expected_a = ga, expected_b = gb;
  const bool want_a = !rng.one_in(4), want_b = !want_a || !rng.one_in(4);
  const auto params = [&](HostTensor& x, HostTensor& y) {
    const DLTensor dx = x.dlpack(), dy = y.dlpack();
    return validate_backward(pair.semiring, grad.dlpack(), argmax.dlpack(), a.dlpack(), b.dlpack(),
                             want_a ? &dx : nullptr, want_b ? &dy : nullptr, 0);
  };
  cpu::matmul_backward(params(expected_a, expected_b));
  BackwardParams p = params(ga, gb);
  Mirror ma(a), mb(b), mg(grad), marg(argmax), mga(ga), mgb(gb);
  p.a.data = ma(p.a.data), p.b.data = mb(p.b.data), p.grad_c.data = mg(p.grad_c.data);
  p.argmax.data = marg(p.argmax.data);
  if (want_a) p.grad_a.data = mga(p.grad_a.data);
  if (want_b) p.grad_b.data = mgb(p.grad_b.data);
  cuda::Status status;
  Scratch scratch(backend->backward_workspace(&p, queue.device, &status));
  check(status, "backward workspace");
  run(
      test.captured, [&] { ma.upload(), mb.upload(), mg.upload(), marg.upload(), mga.upload(), mgb.upload(); },
      [&] { ma.scramble(), mb.scramble(), mg.scramble(), marg.scramble(); },
      [&] {
        backend->matmul_backward(&p, &queue, scratch.data(), &status);
        check(status, test.text().c_str());
      });
  HostTensor got_a = ga, got_b = gb;
  mga.download(got_a);
  mgb.download(got_b);
  if (!got_a.same_bytes(expected_a))
    report("gradient " + test.text(), "grad_a: " + differences(pair.dtype, got_a, expected_a));
  if (!got_b.same_bytes(expected_b))
    report("gradient " + test.text(), "grad_b: " + differences(pair.dtype, got_b, expected_b));
}

Case random_case(Pair pair, Rng& rng, bool large) {
  Case test;
  test.pair = pair;
  test.shape = random_shape(rng, int64_t{1} << 24);
  if (large) {
    // Sizes at which the kernels for large products run, edges included.
    constexpr int64_t kLarge[] = {192, 256, 257, 384, 500, 512, 516, 640, 768, 1000, 1024, 1025, 1100, 2048, 2052};
    int64_t m, n, k;
    do m = rng.pick(kLarge), n = rng.pick(kLarge), k = rng.pick(kLarge);
    while (m * n * k > int64_t{1} << 30);
    if (rng.one_in(8)) (rng.one_in(2) ? m : n) = 1 + rng.below(70);
    const BatchCase batch = rng.one_in(4) ? rng.pick(batch_cases()) : BatchCase{};
    const Shape lead = broadcast(batch);
    test.shape = {with_matrix(batch.a, m, k), with_matrix(batch.b, k, n), with_matrix(lead, m, n)};
  }
  if (rng.one_in(50)) test.shape.a.back() = test.shape.b[test.shape.b.size() - 2] = 0;
  const auto plain = [&] { return rng.one_in(2) ? Layout::row_major : Layout::column_major; };
  const bool ordinary = rng.one_in(2);
  test.a = ordinary ? plain() : rng.pick(kInputLayouts);
  test.b = ordinary ? plain() : rng.pick(kInputLayouts);
  test.c = ordinary ? plain() : rng.pick(kOutputLayouts);
  test.argmax = ordinary ? test.c : rng.pick(kOutputLayouts);
  test.fill_a = rng.pick(kFills);
  test.fill_b = rng.one_in(3) ? rng.pick(kFills) : test.fill_a;
  test.mode = rng.pick(kModes);
  test.captured = rng.one_in(4);
  return test;
}

}  // namespace
}  // namespace tropical::testing

int main(int argc, char** argv) {
  using namespace tropical;
  using namespace tropical::testing;
  double seconds = 60;
  uint64_t seed = 1;
  std::string only, library = argc > 1 ? argv[1] : "";
  bool large = false;
  for (int i = 2; i < argc; ++i) {
    const std::string option = argv[i];
    if (option == "--large") large = true;
    if (i + 1 == argc) continue;
    if (option == "--seconds") seconds = std::atof(argv[i + 1]);
    if (option == "--seed") seed = std::strtoull(argv[i + 1], nullptr, 10);
    if (option == "--only") only = argv[i + 1];
  }
  begin(library.c_str());
  const auto start = std::chrono::steady_clock::now();
  const auto elapsed = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); };
  std::map<std::string, int> products, gradients;
  for (uint64_t round = 0; elapsed() < seconds; ++round) {
    for (const Pair pair : supported_pairs()) {
      const std::string name = pair_text(pair);
      if (name.find(only) == std::string::npos) continue;
      Rng rng(seed * 1000003 + round * 101 + static_cast<uint64_t>(pair.semiring) * 11 +
              static_cast<uint64_t>(pair.dtype));
      product(random_case(pair, rng, large), rng);
      ++products[name];
      bool differentiable = false;
      visit(pair.semiring, pair.dtype, [&]<class S, class T>() { differentiable = differentiable_v<S, T>; });
      if (differentiable && round % 3 == 0) {
        gradient(random_case(pair, rng, large), rng);
        ++gradients[name];
      }
      if (elapsed() > seconds) break;
    }
  }
  int total = 0;
  for (const auto& [name, count] : products) total += count;
  int total_gradients = 0;
  for (const auto& [name, count] : gradients) total_gradients += count;
  std::printf("%zu pairs, %d products, %d gradients, %d failures, %.0f s\n", products.size(), total, total_gradients,
              failures, elapsed());
  return failures ? 1 : 0;
}
