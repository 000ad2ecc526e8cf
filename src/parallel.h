// The one place where threads start.
#pragma once
#include <cstdint>
#include <functional>

namespace tropical {

// As many threads as a call may use: `requested`, or all that OpenMP would use if it is 0; 1 in a forked child,
// where OpenMP's workers do not exist.
int thread_count(int requested);

// Calls body(task, worker) for every task in [0, tasks), each once, on up to `threads` threads in no fixed order;
// worker < threads tells the threads apart. Exceptions of the body reach the caller, one of them.
void parallel_for(int64_t tasks, int threads, const std::function<void(int64_t task, int worker)>& body);

}  // namespace tropical
