// The entry of forced alignment: its shape rules, then the backend of the device.
#include "checks.h"
#include "execute.h"
#include "tensor.h"
#include "tropical_gemm/matmul.h"
#include "tropical_gemm/viterbi.h"

namespace tropical {

void forced_align(const DLTensor& log_probs, const DLTensor& targets, const DLTensor* input_lengths,
                  const DLTensor* target_lengths, int64_t blank, const DLTensor& labels, const DLTensor& scores,
                  const TrellisOptions& options) {
  check_forms({{&log_probs, "log_probs"},
               {&targets, "targets"},
               {input_lengths, "input_lengths"},
               {target_lengths, "target_lengths"},
               {&labels, "labels"},
               {&scores, "scores"}});
  AlignParams p;
  p.dtype = dtype_of(log_probs.dtype, "log_probs");
  check_float(p.dtype, "log_probs");
  const auto check = [&](const DLTensor& x, const char* name) { check_tensor(x, name, log_probs, "log_probs"); };
  if (log_probs.ndim != 3 || log_probs.shape[2] == 0)
    bad_value("log_probs has shape " + shape_text(log_probs) +
              ", expected (batch, steps, classes) with at least one class");
  check(log_probs, "log_probs");
  p.batch = log_probs.shape[0], p.steps = log_probs.shape[1], p.classes = log_probs.shape[2];
  if (blank < 0 || blank >= p.classes)
    bad_value("blank is " + std::to_string(blank) + ", expected a class in [0, " + std::to_string(p.classes) + ")");
  p.blank = blank;
  if (targets.ndim != 2 || targets.shape[0] != p.batch)
    bad_value("targets has shape " + shape_text(targets) + ", expected (" + std::to_string(p.batch) +
              ", the most targets of a sequence)");
  p.targets = targets.shape[1];
  const auto integers = [&](const DLTensor& x, const char* name, const std::vector<int64_t>& shape, bool& wide) {
    return strided_integers(x, name, shape, log_probs, "log_probs", wide);
  };
  p.target = integers(targets, "targets", {p.batch, p.targets}, p.targets_are_int64);
  if (input_lengths) p.input_lengths = integers(*input_lengths, "input_lengths", {p.batch}, p.input_lengths_are_int64);
  if (target_lengths)
    p.target_lengths = integers(*target_lengths, "target_lengths", {p.batch}, p.target_lengths_are_int64);
  p.labels = integers(labels, "labels", {p.batch, p.steps}, p.labels_are_int64);
  check_dtype(scores, "scores", p.dtype, " like log_probs");
  check_shape(scores, "scores", {p.batch, p.steps});
  check(scores, "scores");
  const DLTensor* read[] = {&log_probs, &targets, input_lengths, target_lengths};
  const char* names[] = {"log_probs", "targets", "input_lengths", "target_lengths"};
  check_outputs({&labels, &scores}, {"labels", "scores"}, read, names);
  check_threads(options.threads);
  p.log_probs = strided(log_probs);
  p.scores = strided(scores);
  p.threads = options.threads;
  p.cancel.flag = options.cancel;
  execute(p, log_probs, options.cuda);
}

}  // namespace tropical
