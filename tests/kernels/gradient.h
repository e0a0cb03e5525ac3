/* Gradients by central differences, in fp64: the judge of every backward operation.
 *
 * The scalar is the inner product of the forward operation's outputs with random cotangents; its
 * derivative with respect to each element of an input must be what the backward operation says
 * when it is given the same cotangents.
 */
#ifndef TL_GRADIENT_H
#define TL_GRADIENT_H

#include "arguments.h"

/* An output of the forward operation and the gradient arriving at it. */
struct gradient_output {
    const char *arg;
    const struct tl_tensor *cotangent;
};

/* Compares every element of `gradient` with differences of the forward rig in argument `input`.
 * `outputs` ends with a NULL arg. All float arguments are fp64 and of moderate size (around 1), so
 * that steps of 1e-5 leave 1e-8 or better; arguments that accumulate start from the same values
 * each time. */
void gradient_check(struct rig *forward, const struct gradient_output *outputs, const char *input,
                    const struct tl_tensor *gradient);

#endif
