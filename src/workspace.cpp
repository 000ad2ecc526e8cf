#include "workspace.h"

#include <cstdlib>

#include "tropical_gemm/error.h"

namespace tropical {

Workspace& Workspace::local() {
  thread_local Workspace workspace;
  return workspace;
}

Workspace::~Workspace() { release(); }

void Workspace::release() {
  std::free(base_);
  base_ = nullptr;
  size_ = used_ = 0;
}

void Workspace::reserve(size_t bytes) {
  used_ = 0;
  if (bytes <= size_) return;
  release();
  // Whole pages, so that packed panels do not share one with other data.
  constexpr size_t kPage = 4096;
  const size_t rounded = (bytes + kPage - 1) / kPage * kPage;
  base_ = static_cast<char*>(std::aligned_alloc(kPage, rounded));
  if (!base_)
    throw Error(ErrorCode::out_of_memory, "no memory for a workspace of " + std::to_string(rounded) + " bytes");
  size_ = rounded;
}

}  // namespace tropical
