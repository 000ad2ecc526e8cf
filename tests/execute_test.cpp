// The way to the CUDA library: what it is handed, whose memory it gets, how its failures come back.
#include "execute.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>

#include "cuda/loader.h"
#include "fake_cuda.h"
#include "tropical_gemm/c_api.h"
#include "tropical_gemm/tropical_gemm.h"

namespace tropical::testing {
namespace {

// Before the first use, which opens the library once for the whole process.
const bool kNamed = setenv("TROPICAL_GEMM_CUDA_LIBRARY", TG_FAKE_CUDA, 1) == 0;

FakeLog& log() {
  static FakeLog* const found = [] {
    void* library = dlopen(TG_FAKE_CUDA, RTLD_NOW | RTLD_LOCAL);
    return reinterpret_cast<FakeLog* (*)()>(dlsym(library, "tropical_gemm_fake_log"))();
  }();
  return *found;
}

void* stream(intptr_t value) { return reinterpret_cast<void*>(value); }

DLTensor on_device(DLTensor x, DLDeviceType type = kDLCUDA, int device = 1) {
  x.device = {type, device};
  return x;
}

struct Product {
  float a[6] = {1, 2, 3, 4, 5, 6}, b[6] = {1, 0, 0, 1, 2, 2}, c[4] = {}, ga[6] = {}, gb[6] = {};
  int32_t argmax[4] = {};
  MatrixView<float> va{a, {2, 3}}, vb{b, {3, 2}}, vc{c, {2, 2}}, vga{ga, {2, 3}}, vgb{gb, {3, 2}};
  MatrixView<int32_t> varg{argmax, {2, 2}};
};

TEST(Execute, TheQueueIsTheTensorsDeviceAndTheCallersStream) {
  Product x;
  const DLTensor arg = on_device(x.varg.dlpack());
  MatmulOptions options;
  options.cuda.stream = stream(0x70);
  for (const DLDeviceType type : {kDLCUDA, kDLCUDAManaged}) {
    matmul(Semiring::max_plus, on_device(x.va.dlpack(), type), on_device(x.vb.dlpack()), on_device(x.vc.dlpack()), &arg,
           options);
    EXPECT_EQ(log().device, 1);
    EXPECT_EQ(log().stream, stream(0x70));
  }
  EXPECT_EQ(x.c[0], 5);
  EXPECT_EQ(x.argmax[0], 2);
  const DLTensor ga = on_device(x.vga.dlpack()), gb = on_device(x.vgb.dlpack());
  matmul_backward(Semiring::max_plus, on_device(x.vc.dlpack()), arg, on_device(x.va.dlpack()), on_device(x.vb.dlpack()),
                  &ga, &gb, 0, {.stream = stream(0x80)});
  EXPECT_EQ(log().stream, stream(0x80));
  EXPECT_EQ(x.ga[2], x.c[0] + x.c[1]);
}

TEST(Execute, PinnedMemoryIsTheHosts) {
  Product x;
  const int64_t calls = log().calls;
  matmul(Semiring::max_plus, on_device(x.va.dlpack(), kDLCUDAHost), x.vb.dlpack(),
         on_device(x.vc.dlpack(), kDLCUDAHost));
  EXPECT_EQ(log().calls, calls);
  EXPECT_EQ(x.c[0], 5);
}

TEST(Execute, WorkspaceComesFromTheCallersAllocator) {
  Product x;
  struct Pool {
    alignas(256) char memory[4096];
    size_t asked = 0;
  } pool;
  MatmulOptions options;
  options.cuda = {nullptr,
                  [](void* context, size_t bytes) -> void* {
                    auto* p = static_cast<Pool*>(context);
                    p->asked += bytes;
                    return bytes <= sizeof p->memory ? p->memory : nullptr;
                  },
                  &pool};
  const auto run = [&] {
    matmul(Semiring::max_plus, on_device(x.va.dlpack()), on_device(x.vb.dlpack()), on_device(x.vc.dlpack()), nullptr,
           options);
  };
  run();
  EXPECT_EQ(pool.asked, 512u);
  EXPECT_EQ(log().workspace, pool.memory);
  // Without one it comes from the library, and is given back.
  options.cuda = {};
  run();
  EXPECT_NE(log().workspace, pool.memory);
  EXPECT_EQ(log().live, 0);
  // An allocator that has nothing.
  options.cuda.allocate = [](void*, size_t) -> void* { return nullptr; };
  const int64_t calls = log().calls;
  try {
    run();
    ADD_FAILURE();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::out_of_memory);
    EXPECT_NE(std::string(e.what()).find("512 bytes"), std::string::npos);
  }
  EXPECT_EQ(log().calls, calls);
}

TEST(Execute, FailuresOfTheBackendComeBackAndLeakNothing) {
  std::vector<float> wide(777);
  float c = 0;
  const MatrixView<float> a(wide.data(), {1, 777}), b(wide.data(), {777, 1}), vc(&c, {1, 1});
  try {
    matmul(Semiring::max_plus, on_device(a.dlpack()), on_device(b.dlpack()), on_device(vc.dlpack()));
    ADD_FAILURE();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::unsupported);
    EXPECT_STREQ(e.what(), "the fake refuses K = 777");
  }
  EXPECT_EQ(log().live, 0);
}

TEST(Execute, NothingIsRunOnBadInput) {
  Product x;
  const int64_t calls = log().calls;
  EXPECT_THROW(matmul(Semiring::max_plus, on_device(x.va.dlpack()), on_device(x.vb.dlpack(), kDLCUDA, 0),
                      on_device(x.vc.dlpack())),
               Error);
  EXPECT_THROW(matmul(Semiring::max_plus, on_device(x.va.dlpack()), on_device(x.va.dlpack()), on_device(x.vc.dlpack())),
               Error);
  EXPECT_EQ(log().calls, calls);
}

// Everything of a closure runs where the matrix is, with one block of the caller's memory; without an allocator it
// comes from the library and is given back, after failures too.
TEST(Execute, ClosuresRunOnTheDevice) {
  constexpr int64_t kNodes = 100;
  std::vector<int32_t> d(kNodes * kNodes, highest<int32_t>()), p(kNodes * kNodes);
  for (int64_t i = 0; i < kNodes; ++i) d[static_cast<size_t>(i * kNodes + (i + 1) % kNodes)] = 2;
  const MatrixView<int32_t> vd(d.data(), {kNodes, kNodes}), vp(p.data(), {kNodes, kNodes});
  const DLTensor x = on_device(vd.dlpack()), pred = on_device(vp.dlpack());
  const GraphFacts facts = load_graph(Semiring::min_plus, x, &x, &pred, {.cuda = {.stream = stream(0x40)}});
  EXPECT_EQ(facts.absent, kNodes * (kNodes - 2));
  EXPECT_EQ(log().stream, stream(0x40));
  struct Pool {
    std::unique_ptr<char, void (*)(void*)> memory{nullptr, std::free};
    size_t bytes = 0;
    int calls = 0;
  } pool;
  ClosureOptions options;
  options.cuda = {stream(0x50),
                  [](void* context, size_t bytes) -> void* {
                    auto* own = static_cast<Pool*>(context);
                    own->bytes = bytes, ++own->calls;
                    own->memory.reset(static_cast<char*>(std::aligned_alloc(256, (bytes + 255) / 256 * 256)));
                    return own->memory.get();
                  },
                  &pool};
  ASSERT_EQ(closure(Semiring::min_plus, x, &pred, options), std::nullopt);
  EXPECT_EQ(d[static_cast<size_t>(kNodes - 1)], 2 * (kNodes - 1));
  EXPECT_EQ(p[static_cast<size_t>(kNodes - 1)], kNodes - 2);
  EXPECT_EQ(log().stream, stream(0x50));
  EXPECT_EQ(pool.calls, 1);
  EXPECT_EQ(pool.bytes, closure_scratch(Semiring::min_plus, x, true));
  EXPECT_EQ(log().live, 0);
  // Rows of paths, from the library's own memory.
  int64_t shape[] = {1, kNodes};
  DLTensor row = pred, weights = x;
  row.shape = shape;
  for (int64_t i = 0; i < kNodes; ++i) d[static_cast<size_t>(i * kNodes)] = -1;  // every node is one step before node 0
  start_paths(Semiring::min_plus, {5}, row, nullptr);
  EXPECT_FALSE(relax(Semiring::min_plus, weights, row, nullptr, kNodes));
  EXPECT_EQ(log().live, 0);
  options.cuda.allocate = [](void*, size_t) -> void* { return nullptr; };
  EXPECT_THROW(closure(Semiring::min_plus, x, nullptr, options), Error);
  EXPECT_TRUE(closure(Semiring::min_plus, x).has_value());
  EXPECT_EQ(log().live, 0);
}

// As after an error on a stream, which every later call reports: what was thrown first must come out.
TEST(Execute, AFailureToReleaseMemoryEndsNothing) {
  constexpr int64_t kNodes = 3;
  std::vector<float> d(kNodes * kNodes, 1);
  const MatrixView<float> view(d.data(), {kNodes, kNodes});
  const DLTensor x = on_device(view.dlpack());
  log().release_fails = true;
  EXPECT_EQ(load_graph(Semiring::min_plus, x, &x, nullptr).absent, 0);
  EXPECT_EQ(closure(Semiring::min_plus, x), std::nullopt);
  log().release_fails = false;
  EXPECT_EQ(log().live, 0);
}

// What the filter did is counted beside the workspace, which is asked for once and is its caller's as ever.
TEST(Execute, CountersOfTheFilterHaveTheirOwnMemory) {
  Product x;
  struct Pool {
    alignas(256) char memory[1 << 16];
    size_t bytes = 0;
    int calls = 0;
  } pool;
  const CudaOptions cuda{nullptr,
                         [](void* context, size_t bytes) -> void* {
                           auto* own = static_cast<Pool*>(context);
                           own->bytes = bytes, ++own->calls;
                           return bytes <= sizeof own->memory ? own->memory : nullptr;
                         },
                         &pool};
  record_filter(true);
  record_filter(true);
  record_filter(false);  // nested: still recorded
  MatmulOptions options;
  options.cuda = cuda;
  matmul(Semiring::max_plus, on_device(x.va.dlpack()), on_device(x.vb.dlpack()), on_device(x.vc.dlpack()), nullptr,
         options);
  EXPECT_EQ(pool.calls, 1);
  EXPECT_EQ(pool.bytes, 512u);
  EXPECT_EQ(last_filter().filtered, 4);
  EXPECT_EQ(last_filter().unproven, 1);
  // A closure's products share one block with its own matrices.
  constexpr int64_t kNodes = 100;
  std::vector<float> plain(kNodes * kNodes), watched;
  for (size_t i = 0; i < plain.size(); ++i) plain[i] = static_cast<float>(i * i * 31 % 1009 + 1);
  watched = plain;
  const MatrixView<float> vp(plain.data(), {kNodes, kNodes}), vw(watched.data(), {kNodes, kNodes});
  pool.calls = 0;
  const int64_t before = log().reported;
  ClosureOptions closing;
  closing.cuda = cuda;
  ASSERT_EQ(closure(Semiring::min_plus, on_device(vw.dlpack()), nullptr, closing), std::nullopt);
  EXPECT_EQ(pool.calls, 1);
  EXPECT_EQ(pool.bytes, closure_scratch(Semiring::min_plus, on_device(vw.dlpack()), false));
  EXPECT_GT(log().reported, before);
  EXPECT_EQ(last_filter().unproven, 1);
  EXPECT_EQ(last_filter().filtered, last_filter().outputs);
  EXPECT_EQ(log().live, 0);
  record_filter(false);
  const int64_t reported = log().reported;
  ASSERT_EQ(closure(Semiring::min_plus, on_device(vp.dlpack())), std::nullopt);
  EXPECT_EQ(log().reported, reported);
  EXPECT_EQ(watched, plain);
}

TEST(Execute, TheCInterfaceHasStreams) {
  Product x;
  tg_matmul_options options = {};
  options.struct_size = sizeof options;
  options.cuda.stream = stream(0x90);
  const DLTensor a = on_device(x.va.dlpack()), b = on_device(x.vb.dlpack()), c = on_device(x.vc.dlpack());
  ASSERT_EQ(tg_matmul(TG_MAX_PLUS, &a, &b, &c, nullptr, &options), TG_OK) << tg_last_error();
  EXPECT_EQ(log().stream, stream(0x90));
}

TEST(Execute, FactsOfTheLibrary) {
  const CudaInfo info = cuda_info();
  EXPECT_TRUE(info.built);
  EXPECT_EQ(info.architectures, "fake");
  EXPECT_EQ(info.problem, "");
  ASSERT_EQ(info.devices.size(), 2u);
  EXPECT_EQ(info.devices[1].minor, 1);
  EXPECT_TRUE(info.devices[0].supported);
  EXPECT_FALSE(info.devices[1].supported);
}

}  // namespace
}  // namespace tropical::testing
