#include "parallel.h"

#include <omp.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>

#include "float_mode.h"

namespace tropical {
namespace {

// A child of fork() inherits OpenMP's state but not its threads: a parallel region would wait for them forever.
std::atomic<bool> in_forked_child{false};
const int registered = pthread_atfork(nullptr, nullptr, [] { in_forked_child = true; });

}  // namespace

int thread_count(int requested) {
  (void)registered;
  if (in_forked_child) return 1;
  return requested > 0 ? requested : omp_get_max_threads();
}

void parallel_for(int64_t tasks, int threads, const std::function<void(int64_t, int)>& body) {
  threads = static_cast<int>(std::min<int64_t>(threads, tasks));
  if (threads <= 1) {
    for (int64_t t = 0; t < tasks; ++t) body(t, 0);
    return;
  }
  std::exception_ptr failure;
  std::mutex lock;
  std::atomic<bool> failed{false};
#pragma omp parallel num_threads(threads)
  {
    const StandardFloats standard;
#pragma omp for schedule(dynamic, 1)
    for (int64_t t = 0; t < tasks; ++t) {
      if (failed) continue;
      try {
        body(t, omp_get_thread_num());
      } catch (...) {
        const std::scoped_lock hold(lock);
        failure = std::current_exception();
        failed = true;
      }
    }
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace tropical
