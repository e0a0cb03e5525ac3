/* Makes idle OpenMP threads sleep instead of spin, unless the user says otherwise: a spinning
 * thread that shares its core with any other process holds up every parallel region by a scheduler
 * quantum, and the CPU kernels become ten times slower. libgomp reads the environment when it is
 * initialised, so this runs before: in the program ahead of libgomp's own constructor, for the
 * module from loader.c.
 */
#include <stdlib.h>

void tlua_openmp_sleep(void);

__attribute__((constructor(101))) void tlua_openmp_sleep(void)
{
    if (!getenv("GOMP_SPINCOUNT"))
        setenv("OMP_WAIT_POLICY", "passive", 0);
}
