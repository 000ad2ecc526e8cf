#include "filter.h"

#include <cstdlib>

#include "tropical_gemm/error.h"

namespace tropical {
namespace {

constexpr const char* kVariable = "TROPICAL_GEMM_FILTER";

FilterMode parse(std::string_view name) {
  if (name.empty() || name == "auto") return FilterMode::automatic;
  if (name == "always") return FilterMode::always;
  if (name == "never") return FilterMode::never;
  throw Error(ErrorCode::invalid_value,
              "filter is '" + std::string(name) + "', expected one of auto, always, never (" + kVariable + ")");
}

// A wrong name in the environment makes the first product throw, and every one after it.
std::atomic<FilterMode>& mode() {
  static std::atomic<FilterMode> chosen = [] {
    const char* wanted = std::getenv(kVariable);
    return parse(wanted ? wanted : "");
  }();
  return chosen;
}

}  // namespace

FilterMode filter_mode() { return mode().load(std::memory_order_relaxed); }

void set_filter(std::string_view name) { mode() = parse(name); }

FilterReport& last_filter() {
  thread_local FilterReport report;
  return report;
}

}  // namespace tropical
