/* Elements in another float type.
 *
 *   y_i = x_i, rounded to nearest even where y is narrower
 */
#ifndef TL_CONVERT_OP_H
#define TL_CONVERT_OP_H

#include "core/kernel.h"

enum {
    CONVERT_X, /* [count] */
    CONVERT_Y, /* [count] */
};

enum { CONVERT_DIM_COUNT };

extern const struct tl_operation tl_op_convert;

#endif
