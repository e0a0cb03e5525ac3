/* Streams beside the caller's, for launchers that start many kernels which may overlap.
 *
 * They belong to the device: made once, when a plan first wants them, and there until the process
 * ends. Fork and join are events, so the caller's stream may be captured into a graph; several
 * launches share the streams and queue up on them.
 *
 *   struct tl_stream lanes[TL_FORK_MOST];
 *   TL_TRY(tl_fork(plan, stream, width, lanes));
 *   ... work on &lanes[i] ...
 *   joined = tl_join(plan, width, lanes);          also after an error in between
 */
#ifndef TL_DEVICE_FORK_H
#define TL_DEVICE_FORK_H

#include "core/kernel.h"

#define TL_FORK_MOST 8

/* Makes the streams of the device; for `plan`, since a launcher creates nothing. */
enum tl_status tl_fork_prepare(struct tl_device *device);

/* lanes[0] is the caller's stream; the others start after what that was given so far. */
enum tl_status tl_fork(const struct tl_plan *plan, struct tl_stream *stream, int width,
                       struct tl_stream *lanes);

/* What lanes[0] is given from now on starts after the work of all lanes. */
enum tl_status tl_join(const struct tl_plan *plan, int width, struct tl_stream *lanes);

#endif
