/* The C part of tilelab as one Lua module, `tilelab_core`: preloaded in the host, a shared object
 * for a stock interpreter. Scripts require "tilelab" (lua/tilelab.lua), which is built on it.
 *
 * The shared object is not linked to liblua: its interpreter provides the API, and two copies of
 * Lua in a process would spoil each other's state.
 */
#include "binding.h"

#include "kernels/table.h"

static const luaL_Reg nothing[] = {
    {NULL, NULL},
};

__attribute__((visibility("default"))) int luaopen_tilelab_core(lua_State *L)
{
    enum tl_status status = tl_kernels_register();
    if (status != TL_OK)
        return luaL_error(L, "%s", tl_error_message());
    luaL_newlib(L, nothing); /* checks that interpreter and headers are of one version */
    tlua_error_open(L);
    tlua_device_open(L);
    tlua_probe_open(L);
    tlua_graph_open(L);
    tlua_tensor_open(L);
    tlua_fill_open(L);
    tlua_kernel_open(L);
    tlua_plan_open(L);
    tlua_stats_open(L);
    tlua_random_open(L);
    tlua_record_open(L);
    tlua_system_open(L);
    tlua_interrupt_open(L);
    tlua_metrics_open(L);
    tlua_profiler_open(L);
    tlua_activity_open(L);
    tlua_nvtx_open(L);
    return 1;
}
