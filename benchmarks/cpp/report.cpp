#include "report.h"

#include <cstdio>
#include <ctime>
#include <fstream>

#include "tropical_gemm/matmul.h"

namespace tropical::bench {
namespace {

std::string format(const char* pattern, double value) {
  char text[64];
  std::snprintf(text, sizeof text, pattern, value);
  return text;
}

std::string quantity_text(Quantity quantity, double value) {
  switch (quantity) {
    case Quantity::share:
      return format("%.1f %%", 100 * value);
    case Quantity::speedup:
      return format("%.2fx", value);
    case Quantity::ratio:
      return format(value < 0.1 ? "%.4f" : "%.2f", value);
  }
  return "";
}

std::string rate_text(double pairs_per_second) {
  return pairs_per_second > 0 ? format("%.1f", pairs_per_second * 1e-9) : "";
}

std::string time_text(double seconds) {
  return seconds < 1e-3 ? format("%.2f us", seconds * 1e6) : format("%.2f ms", seconds * 1e3);
}

std::string cpu_model() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);)
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  return "unknown CPU";
}

std::string today() {
  const std::time_t now = std::time(nullptr);
  char text[16];
  std::strftime(text, sizeof text, "%Y-%m-%d", std::gmtime(&now));
  return text;
}

constexpr const char* kCompiler =
#if defined(__clang__)
    "clang " __clang_version__;
#elif defined(__GNUC__)
    "g++ " __VERSION__;
#else
    "unknown compiler";
#endif

}  // namespace

std::string target_text(const Outcome& o) {
  if (o.target == 0) return "";
  if (o.quantity == Quantity::share) return format(">= %.0f %%", 100 * o.target);
  return (o.quantity == Quantity::ratio ? "<= " : ">= ") + quantity_text(o.quantity, o.target);
}

std::string verdict(const Outcome& o) {
  if (o.target == 0) return "";
  const bool met = o.quantity == Quantity::ratio ? o.value.median <= o.target : o.value.median >= o.target;
  return met ? "met" : "missed";
}

void write_report(std::ostream& out, const std::vector<Outcome>& outcomes, const std::vector<std::string>& unmeasured) {
  const BuildInfo info = build_info();
  out << "\n"
      << cpu_model() << "; " << info.isa << "; " << kCompiler << "; tropical-gemm " << info.version << "; " << today()
      << ". Medians of " << kPairs << " interleaved pairs.\n\n"
      << "| row (M x K x N) | measured | lowest to highest | G/s | limit or base G/s | time | target | |\n"
      << "|---|---|---|---|---|---|---|---|\n";
  for (const Outcome& o : outcomes) {
    const std::string words = verdict(o);
    out << "| " << o.name << " | " << quantity_text(o.quantity, o.value.median) << " | "
        << quantity_text(o.quantity, o.value.low) << " to " << quantity_text(o.quantity, o.value.high) << " | "
        << rate_text(o.rate) << " | " << rate_text(o.base_rate) << " | " << time_text(o.seconds) << " | "
        << target_text(o) << " | " << (words == "missed" ? "**missed**" : words) << " |\n";
  }
  for (const std::string& line : unmeasured) out << "\nNot measured: " << line << "\n";
}

}  // namespace tropical::bench
