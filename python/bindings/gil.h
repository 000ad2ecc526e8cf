// Work without the GIL.
#pragma once
#include <Python.h>
#include <unistd.h>

namespace tropical::python {

// Gives the GIL away until the end of the scope. A thread that wants it back while the interpreter ends does not get
// it: Python before 3.14 ends such a thread by unwinding its stack, through destructors that hold Python's objects and
// may not throw. It stops here for good instead, as it does in Python 3.14; the process ends without it.
class WithoutGil {
 public:
  WithoutGil() : state_(PyEval_SaveThread()) {}
  ~WithoutGil() {
    try {
      PyEval_RestoreThread(state_);
    } catch (...) {
      for (;;) pause();
    }
  }
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;

 private:
  PyThreadState* state_;
};

}  // namespace tropical::python
