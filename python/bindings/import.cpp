#include "import.h"

#include <memory>
#include <mutex>
#include <vector>

#include "tropical_gemm/cuda.h"

namespace tropical::python {
namespace {

// Imports that the GPU has finished with. They are returned by a thread that holds the GIL: deleters may need it, and
// the driver's thread must not wait for it. Never destroyed: the driver may call until the process ends.
struct Finished {
  std::mutex mutex;
  std::vector<std::unique_ptr<Import>> imports;

  void add(std::unique_ptr<Import> import) {
    const std::lock_guard lock(mutex);
    imports.push_back(std::move(import));
  }
  void give_back() {
    std::vector<std::unique_ptr<Import>> taken;
    {
      const std::lock_guard lock(mutex);
      taken.swap(imports);
    }
  }
};
Finished& finished() {
  static auto* const instance = new Finished;
  return *instance;
}

int give_back_pending(void*) {
  finished().give_back();
  return 0;
}

}  // namespace

void return_when_done(Import import, int device, void* stream) {
  finished().give_back();  // where the interpreter's queue was full
  auto kept = std::make_unique<Import>(std::move(import));
  cuda_when_done(
      [](void* context) {
        finished().add(std::unique_ptr<Import>(static_cast<Import*>(context)));
        if (Py_IsInitialized()) Py_AddPendingCall(give_back_pending, nullptr);
      },
      kept.get(), device, stream);
  (void)kept.release();
}

}  // namespace tropical::python
