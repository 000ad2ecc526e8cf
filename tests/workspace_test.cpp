#include "workspace.h"

#include <gtest/gtest.h>

#include <cstring>
#include <thread>

#include "tropical_gemm/error.h"

namespace tropical {
namespace {

TEST(Workspace, TakingsAreAlignedAndDisjoint) {
  Workspace w;
  const size_t sizes[] = {1, 63, 64, 65, 1000, 0, 7};
  size_t total = 0;
  for (const size_t size : sizes) total += Workspace::padded(size);
  w.reserve(total);
  char* previous_end = nullptr;
  for (const size_t size : sizes) {
    char* p = w.take<char>(size);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(p) % Workspace::kAlignment, 0u);
    EXPECT_GE(p, previous_end);
    std::memset(p, 1, size);
    previous_end = p + size;
  }
}

TEST(Workspace, SmallerReservationsReuseTheMemory) {
  Workspace w;
  w.reserve(1 << 20);
  char* first = w.take<char>(1);
  w.reserve(1000);
  EXPECT_EQ(w.take<char>(1), first);
  w.reserve(0);
  EXPECT_EQ(w.take<double>(0), reinterpret_cast<double*>(first));
}

TEST(Workspace, ScopeKeepsSmallArenasForTheNextCall) {
  Workspace w;
  char* first;
  {
    WorkspaceScope scope(w, 4096);
    first = scope.take<char>(4096);
  }
  WorkspaceScope scope(w, 64);
  EXPECT_EQ(scope.take<char>(64), first);
}

TEST(Workspace, LargeArenasAreGivenBackAndComeAgain) {
  Workspace w;
  for (int i = 0; i < 3; ++i) {
    WorkspaceScope scope(w, size_t{64} << 20);
    char* p = scope.take<char>(size_t{64} << 20);
    p[0] = p[(size_t{64} << 20) - 1] = 1;
  }
}

TEST(Workspace, EachThreadHasItsOwn) {
  Workspace* other = nullptr;
  std::thread([&] { other = &Workspace::local(); }).join();
  EXPECT_NE(other, &Workspace::local());
  EXPECT_EQ(&Workspace::local(), &Workspace::local());
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // whose allocators abort instead
TEST(Workspace, TooMuchThrowsAndLeavesItUsable) {
  Workspace w;
  w.reserve(64);
  try {
    w.reserve(size_t{1} << 62);
    FAIL() << "nothing was thrown";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::out_of_memory);
  }
  w.reserve(64);
  w.take<char>(64)[63] = 1;
}
#endif

}  // namespace
}  // namespace tropical
