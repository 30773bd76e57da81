#include "model_ops.h"

extern const char model_no_constants;

#include "model.h"
#include "model_ops.h"

#include <math.h>
#include <string.h>


int32_t model_run(const struct model_inputs *inputs, struct model_outputs *outputs,
    struct model_workspaces *workspaces, struct model_devices *devices) {
  int32_t failed = 0;
  uint8_t *workspace = workspaces ? workspaces->workspace : 0;
  (void)inputs; (void)outputs; (void)devices; (void)failed; (void)workspace;
  failed = model_add(inputs->a, inputs->b, outputs->output0);
  if (failed) return failed;
  return failed;
}

const char *model_message(int32_t code) {
  switch (code) {
  default: return "";
  }
}

#include "model_ops.h"

#include <math.h>
#include <string.h>


int32_t model_add(const float *restrict x1, const float *restrict x2, float *restrict out) {
  (void)x1;
  (void)x2;
  (void)out;
  for (int64_t i0 = 0; i0 < 20; ++i0) {
    out[i0] = (x1[i0] + x2[i0]);
  }
  return 0;
}
