// Ctrl-C, and Python's other signals, during a long product.
#pragma once
#include <nanobind/nanobind.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <future>
#include <vector>

#include "filter.h"
#include "gil.h"
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

// An element that is written to new memory takes at least as long as so many candidates.
inline constexpr double kWritten = 32;

// The work of making an array of this shape from so many candidates for each element; none where a GPU does it, for
// which the caller does not wait.
inline double work_on_cpu(const DLTensor& on, const std::vector<int64_t>& shape, double candidates) {
  if (on.device.device_type != kDLCPU) return 0;
  double work = candidates + kWritten;
  for (const int64_t size : shape) work *= static_cast<double>(size);
  return work;
}
inline double product_work(const DLTensor& a, const std::vector<int64_t>& shape) {
  return work_on_cpu(a, shape, static_cast<double>(a.shape[a.ndim - 1]));
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
    const WithoutGil without;
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
    const WithoutGil without;
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
