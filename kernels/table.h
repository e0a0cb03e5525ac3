/* The table of what this build can run. */
#ifndef TL_TABLE_H
#define TL_TABLE_H

#include "core/kernel.h"

/* Hands the rows of table.def to the registry. Called once, when the program starts, before any
 * look-up; a failure names the row that is wrong, and the program should not go on. */
enum tl_status tl_kernels_register(void);

#endif
