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
  failed = model_argmax(inputs->x, outputs->output0);
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


int32_t model_argmax(const float *restrict x, int64_t *restrict argmax_v0) {
  (void)x;
  (void)argmax_v0;
  float argmax_v1[4];
  (void)argmax_v1;
  for (int64_t i0 = 0; i0 < 4; ++i0) {
    argmax_v0[i0] = 9223372036854775807ll;
    argmax_v1[i0] = (-INFINITY);
    for (int64_t k1 = 0; k1 < 24; ++k1) {
      const int64_t v_argmax_v0 = ((((argmax_v1[i0] > x[i0 * 24 + k1]) || ((argmax_v1[i0] != argmax_v1[i0]) && (x[i0 * 24 + k1] == x[i0 * 24 + k1]))) || (((argmax_v1[i0] == x[i0 * 24 + k1]) || ((argmax_v1[i0] != argmax_v1[i0]) && (x[i0 * 24 + k1] != x[i0 * 24 + k1]))) && (argmax_v0[i0] < k1))) ? argmax_v0[i0] : k1);
      (void)v_argmax_v0;
      const float v_argmax_v1 = ((((argmax_v1[i0] > x[i0 * 24 + k1]) || ((argmax_v1[i0] != argmax_v1[i0]) && (x[i0 * 24 + k1] == x[i0 * 24 + k1]))) || (((argmax_v1[i0] == x[i0 * 24 + k1]) || ((argmax_v1[i0] != argmax_v1[i0]) && (x[i0 * 24 + k1] != x[i0 * 24 + k1]))) && (argmax_v0[i0] < k1))) ? argmax_v1[i0] : x[i0 * 24 + k1]);
      (void)v_argmax_v1;
      argmax_v0[i0] = v_argmax_v0;
      argmax_v1[i0] = v_argmax_v1;
    }
  }
  return 0;
}
