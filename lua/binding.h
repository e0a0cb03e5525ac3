/* What the binding files share: userdata types, errors, and tables of named arguments.
 *
 * Lua raises with longjmp. So every resource lives in a userdata whose metatable is set while it is
 * still empty, scratch memory is a userdata too, and nothing else is held when Lua is called.
 *
 * Errors: the caller's mistake raises a text with its position. What the machine refuses comes back
 * as nil, message, code from functions that open, allocate, read or write whole files. Functions
 * called for their effect (launch, fill, copy, synchronize, a record's row) raise an error value
 * instead, since a nil that nobody looks at would spoil a measurement silently.
 */
#ifndef TL_LUA_BINDING_H
#define TL_LUA_BINDING_H

#include <lauxlib.h>
#include <lua.h>
#include <stdbool.h>

#include "core/device.h"
#include "core/status.h"
#include "core/tensor.h"

/* The module; the only symbol that tilelab_core.so exports. */
int luaopen_tilelab_core(lua_State *L);

/* Each adds its noun's functions to the module table on top of the stack. */
void tlua_error_open(lua_State *L);
void tlua_device_open(lua_State *L);
void tlua_probe_open(lua_State *L); /* after tlua_device_open: it adds methods */
void tlua_graph_open(lua_State *L); /* likewise */
void tlua_tensor_open(lua_State *L);
void tlua_fill_open(lua_State *L); /* after tlua_tensor_open: it adds methods */
void tlua_kernel_open(lua_State *L);
void tlua_plan_open(lua_State *L);
void tlua_stats_open(lua_State *L);
void tlua_random_open(lua_State *L);
void tlua_record_open(lua_State *L);
void tlua_system_open(lua_State *L);
void tlua_interrupt_open(lua_State *L);
void tlua_metrics_open(lua_State *L);
void tlua_profiler_open(lua_State *L);
void tlua_sampling_open(lua_State *L);
void tlua_activity_open(lua_State *L);
void tlua_nvtx_open(lua_State *L);

/* --- errors (error.c) --- */

/* Call with a failed status. Raises a mistake of the caller; otherwise pushes nil, the message and
 * the code, and returns 3. */
int tlua_refused(lua_State *L, enum tl_status status);

/* Call with a failed status, after an action. Always raises: a text with position for the caller's
 * mistake, an error value of kind "refused" for the rest. */
int tlua_raise(lua_State *L, enum tl_status status);

/* Pushes an error value {kind, message, code}; a NULL code is left out. */
void tlua_error_push(lua_State *L, const char *kind, const char *message, const char *code);

/* The kind of the error value at `index`, NULL for any other value. Pushes nothing; the text lives
 * as long as the error value. */
const char *tlua_error_kind(lua_State *L, int index);

/* Raises "<what> '<name>'; did you mean '<nearest>'?" or, where none is near, the list of names. */
int tlua_unknown(lua_State *L, const char *what, const char *name, const char *const *names,
                 int count);

/* --- interruption (interrupt.c) --- */

/* From arm to disarm (calls nest) the first SIGINT sets a flag and makes `L` raise an error value
 * of kind "interrupted" at its next instruction; a second one ends the process as usual. */
void tlua_interrupt_arm(lua_State *L);
void tlua_interrupt_disarm(void);
bool tlua_interrupted(void);
void tlua_interrupt_clear(void);

/* Raises the interruption when one is pending: for functions in which a script spends its time. */
void tlua_interrupt_check(lua_State *L);

/* --- devices (device.c) --- */

void tlua_device_push(lua_State *L, struct tl_device *device);

#define TLUA_DEVICE "tilelab.device"

/* A device userdata; raises for anything else. */
struct tl_device *tlua_device_check(lua_State *L, int index);

/* A device userdata, or a name that is opened. Returns NULL with *status set where the machine has
 * no such device; raises for anything else. */
struct tl_device *tlua_device_get(lua_State *L, int index, enum tl_status *status);

/* The stream at `index`, of `device`; absent or nil is NULL, the default stream. */
struct tl_stream *tlua_stream_opt(lua_State *L, int index, const struct tl_device *device);

/* --- graphs (graph.c) --- */

/* While a graph of the tensor's device is captured, lets it hold the tensor's memory. Call it for
 * every tensor that captured work reads or writes; otherwise it does nothing, fast. */
void tlua_graph_keep(lua_State *L, const struct tl_tensor *tensor);

/* Whether one is captured on this device. */
bool tlua_graph_captures(const struct tl_device *device);

/* --- tensors (tensor.c) --- */

#define TLUA_TENSOR "tilelab.tensor"

/* Pushes a closed tensor userdata, to be filled in by the caller. */
struct tl_tensor *tlua_tensor_new(lua_State *L);

/* An open tensor; raises for anything else. */
struct tl_tensor *tlua_tensor_check(lua_State *L, int index);

/* Allocates into the userdata's `tensor`; collects garbage, and tries again, where memory is
 * short. Lets the collector know how much was taken. */
enum tl_status tlua_tensor_allocate(lua_State *L, struct tl_tensor *tensor,
                                    struct tl_device *device, enum tl_dtype dtype, int rank,
                                    const int64_t *shape);

/* Reads a shape (a list of sizes, or one size) and returns its rank. */
int tlua_shape_check(lua_State *L, int index, int64_t shape[TL_MAX_RANK]);

enum tl_dtype tlua_dtype_check(lua_State *L, int index);

/* The number at `index`, to fill a tensor with; raises for a value that the dtype cannot hold
 * (fill.c). */
double tlua_fill_check(lua_State *L, int index, enum tl_dtype dtype);

/* --- tables of named arguments (error.c) --- */

/* Raises for a key of the table at `index` that is not among `names` (ends with NULL). */
void tlua_keys_check(lua_State *L, int index, const char *what, const char *const *names);

/* The number in field `name`, or `fallback` where it is absent; raises for another type. */
double tlua_field_number(lua_State *L, int index, const char *name, double fallback);
lua_Integer tlua_field_integer(lua_State *L, int index, const char *name, lua_Integer fallback);

/* The strings of the list at `index` (metrics.c), in a userdata that is pushed; raises, naming
 * `what`, for another type. */
const char **tlua_strings_check(lua_State *L, int index, const char *what, int *count);

/* Pushes a new list of strings. */
void tlua_strings_push(lua_State *L, const char *const *strings, int count);

/* Each sets field `name` of the table on top of the stack; a NULL string sets nil. */
void tlua_set_string(lua_State *L, const char *name, const char *value);
void tlua_set_number(lua_State *L, const char *name, double value);
void tlua_set_integer(lua_State *L, const char *name, int64_t value);
void tlua_set_boolean(lua_State *L, const char *name, bool value);

/* --- metatables --- */

/* Makes the metatable `name` from `meta`; `methods` go into its __index. Where `fields` is given,
 * __index is that function with the table of methods as its first upvalue. */
void tlua_metatable(lua_State *L, const char *name, const luaL_Reg *meta, const luaL_Reg *methods,
                    lua_CFunction fields);

/* Adds methods to the metatable `name`, which tlua_metatable made. */
void tlua_metatable_extend(lua_State *L, const char *name, const luaL_Reg *methods);

/* Ends such a `fields` function: the method named at index 2, or an error naming the nearest of
 * the methods and `names` (ends with NULL). */
int tlua_method(lua_State *L, const char *what, const char *const *names);

#endif
