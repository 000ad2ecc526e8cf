// Ctrl-C, and Python's other signals, during a long product.
#pragma once
#include <nanobind/nanobind.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <future>
#include <vector>

#include "filter.h"
#include "parallel.h"
#include "tropical_gemm/matmul.h"

namespace tropical::python {

// Products of fewer candidates are waited for: they take some 0.05 s where the kernels are fast, and about 1 s in the
// slowest (int64 that saturates, argmax of a whole range).
inline double watched_work(const DLDataType& dtype) {
  const bool may_saturate_one_by_one = dtype.code == kDLInt && dtype.bits == 64;
  return may_saturate_one_by_one ? 1LL << 28 : 1LL << 30;
}
inline constexpr std::chrono::milliseconds kBetweenLooks{50};

// Candidates in a product of this shape; none in one that a GPU computes, for which the caller does not wait.
inline double work_on_cpu(const DLTensor& a, const std::vector<int64_t>& shape) {
  if (a.device.device_type != kDLCPU) return 0;
  double work = static_cast<double>(a.shape[a.ndim - 1]);
  for (const int64_t size : shape) work *= static_cast<double>(size);
  return work;
}

// Python handles signals on its main thread only.
inline bool on_main_thread() {
  const nanobind::module_ threading = nanobind::module_::import_("threading");
  return threading.attr("current_thread")().is(threading.attr("main_thread")());
}

// call() on a thread of its own, while this one looks for signals and runs look() now and then. Where a handler raises,
// as Ctrl-C's does, or look() does, `cancel` is raised and the exception goes on. `call` must not touch Python.
template <class Call, class Look>
auto run_watched(std::atomic<bool>& cancel, const Call& call, const Look& look) {
  auto result = std::async(std::launch::async, call);
  const auto done_within = [&](std::chrono::milliseconds time) {
    const nanobind::gil_scoped_release release;
    return result.wait_for(time) == std::future_status::ready;
  };
  while (!done_within(kBetweenLooks)) {
    try {
      if (PyErr_CheckSignals() != 0) throw nanobind::python_error();
      look();
    } catch (...) {
      cancel = true;
      while (!done_within(kBetweenLooks)) {
      }
      throw;
    }
  }
  return result.get();
}

// call(options) without the GIL; one of more work than `watched` is watched.
template <class Options, class Call>
void run_interruptible(double work, double watched, Options options, const Call& call) {
  if (work < watched || !on_main_thread()) {
    const nanobind::gil_scoped_release release;
    return call(options);
  }
  std::atomic<bool> cancel{false};
  options.cancel = &cancel;
  if (options.threads == 0) options.threads = thread_count(0);  // this thread's setting, not the new one's
  filter_report() = run_watched(
      cancel,
      [&] {
        call(options);
        return last_filter();  // that thread's, which ends here
      },
      [] {});
}

}  // namespace tropical::python
