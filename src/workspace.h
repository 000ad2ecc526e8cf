// All temporary memory of a call: one aligned arena per worker, kept by its thread for the next call.
#pragma once
#include <cstddef>
#include <cstdint>

namespace tropical {

class Workspace {
 public:
  static constexpr size_t kAlignment = 64;

  // This thread's arena. At most kKept bytes stay with an idle thread.
  static Workspace& local();

  Workspace() = default;
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;
  ~Workspace();

  // Forgets earlier takings and provides for `bytes` in all. Throws Error(out_of_memory).
  void reserve(size_t bytes);
  // The next `count` elements, aligned to kAlignment. The sum of all takings must have been reserved.
  template <class T>
  T* take(size_t count) {
    T* p = reinterpret_cast<T*>(base_ + used_);
    used_ += padded(count * sizeof(T));
    return p;
  }
  static size_t padded(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

 private:
  static constexpr size_t kKept = size_t{16} << 20;
  char* base_ = nullptr;
  size_t size_ = 0;
  size_t used_ = 0;

  friend class WorkspaceScope;
  void release();
};

// Reserves for one piece of work and gives a large arena back at its end.
class WorkspaceScope {
 public:
  WorkspaceScope(Workspace& w, size_t bytes) : workspace_(w) { w.reserve(bytes); }
  ~WorkspaceScope() {
    if (workspace_.size_ > Workspace::kKept) workspace_.release();
  }
  WorkspaceScope(const WorkspaceScope&) = delete;
  WorkspaceScope& operator=(const WorkspaceScope&) = delete;

  template <class T>
  T* take(size_t count) {
    return workspace_.take<T>(count);
  }

 private:
  Workspace& workspace_;
};

}  // namespace tropical
