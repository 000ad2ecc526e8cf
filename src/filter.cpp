#include "filter.h"

#include <cstdlib>

#include "tropical_gemm/error.h"

namespace tropical {
namespace {

constexpr const char* kVariable = "TROPICAL_GEMM_FILTER";

constexpr const char* kNames[] = {"auto", "always", "never"};

FilterMode parse(std::string_view name) {
  for (int i = 0; i < 3; ++i)
    if (name == kNames[i]) return static_cast<FilterMode>(i);
  throw Error(ErrorCode::invalid_value,
              "filter is '" + std::string(name) + "', expected one of auto, always, never (" + kVariable + ")");
}

FilterMode environment() {
  const char* wanted = std::getenv(kVariable);
  return wanted && *wanted ? parse(wanted) : FilterMode::automatic;
}

// A wrong name in the environment makes the first product throw, and every one after it.
std::atomic<FilterMode>& mode() {
  static std::atomic<FilterMode> chosen = environment();
  return chosen;
}

std::atomic<bool> recorded{false};

}  // namespace

FilterMode filter_mode() { return mode().load(std::memory_order_relaxed); }

const char* filter_mode_name() { return kNames[static_cast<int>(filter_mode())]; }

void set_filter(std::string_view name) { mode() = name.empty() ? environment() : parse(name); }

void record_filter(bool wanted) { recorded = wanted; }
bool filter_recorded() { return recorded.load(std::memory_order_relaxed); }

FilterReport& last_filter() {
  thread_local FilterReport report;
  return report;
}

}  // namespace tropical
