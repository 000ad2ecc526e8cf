#include "filter.h"

#include <cstdlib>

#include "tropical_gemm/error.h"

namespace tropical {
namespace {

constexpr const char* kVariable = "TROPICAL_GEMM_FILTER";

constexpr const char* kNames[] = {"auto", "always", "never"};  // in the order of Filtering

Filtering parse(std::string_view name) {
  for (int i = 0; i < 3; ++i)
    if (name == kNames[i]) return static_cast<Filtering>(i);
  throw Error(ErrorCode::invalid_value,
              "filter is '" + std::string(name) + "', expected one of auto, always, never (" + kVariable + ")");
}

Filtering environment() {
  const char* wanted = std::getenv(kVariable);
  return wanted && *wanted ? parse(wanted) : Filtering::automatic;
}

// A wrong name in the environment makes the first product throw, and every one after it.
std::atomic<Filtering>& mode() {
  static std::atomic<Filtering> chosen = environment();
  return chosen;
}

std::atomic<int64_t> recorders{0};

}  // namespace

Filtering filtering() { return filter_without_proof ? Filtering::unproven : mode().load(std::memory_order_relaxed); }

const char* filter_mode_name() { return kNames[static_cast<int>(mode().load())]; }

void set_filter(std::string_view name) { mode() = name.empty() ? environment() : parse(name); }

void record_filter(bool wanted) { recorders += wanted ? 1 : -1; }
bool filter_recorded() { return recorders.load(std::memory_order_relaxed) > 0; }

FilterReport& filter_report() {
  thread_local FilterReport report;
  return report;
}
FilterReport last_filter() { return filter_report(); }

}  // namespace tropical
