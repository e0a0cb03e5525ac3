/* What chips can count; works without a GPU (core/cupti_host.h).
 *
 *   core.chips() -> list of names | nil, message, code
 *   core.metric_names(chip[, use]) -> sorted base names | nil, message, code
 *   core.metric_check(chip, name[, use]) -> true | nil, message, code; "argument" with near names
 *   core.metric_describe(chip, name[, use]) -> {base, kind, description, hardware, unit,
 *       rollups = {".sum", ...}} | nil, message, code; raises for an unknown one
 *   core.metric_passes(chip, names[, use]) -> how often a region runs | nil, message, code
 *
 * `use` is "ranges" (the default) or "samples".
 */
#include "binding.h"

#include <string.h>

#include "core/cupti_host.h"

static enum tl_status check_host(lua_State *L, int use_index, struct tl_cupti_host **out)
{
    static const char *const uses[] = {"ranges", "samples", NULL};
    const char *chip = luaL_checkstring(L, 1);
    int use = luaL_checkoption(L, use_index, "ranges", uses);
    return tl_cupti_host_open(chip, use ? TL_CUPTI_SAMPLES : TL_CUPTI_RANGES, out);
}

static int chips(lua_State *L)
{
    char text[1024];
    enum tl_status status = tl_cupti_host_chips(text, sizeof text);
    if (status != TL_OK)
        return tlua_refused(L, status);
    lua_newtable(L);
    int count = 0;
    for (const char *word = text; *word; word += strcspn(word, " "), word += *word == ' ') {
        lua_pushlstring(L, word, strcspn(word, " "));
        lua_rawseti(L, -2, ++count);
    }
    return 1;
}

static int metric_names(lua_State *L)
{
    struct tl_cupti_host *host;
    enum tl_status status = check_host(L, 2, &host);
    if (status != TL_OK)
        return tlua_refused(L, status);
    lua_newtable(L);
    const char *name;
    for (int i = 0; (name = tl_cupti_host_name_at(host, i)) != NULL; i++) {
        lua_pushstring(L, name);
        lua_rawseti(L, -2, i + 1);
    }
    return 1;
}

static int metric_check(lua_State *L)
{
    struct tl_cupti_host *host;
    enum tl_status status = check_host(L, 3, &host);
    if (status == TL_OK)
        status = tl_cupti_host_check(host, luaL_checkstring(L, 2));
    if (status != TL_OK) {
        luaL_pushfail(L);
        lua_pushstring(L, tl_error_message());
        lua_pushstring(L, tl_status_name(status));
        return 3;
    }
    lua_pushboolean(L, 1);
    return 1;
}

static int metric_describe(lua_State *L)
{
    struct tl_cupti_host *host;
    struct tl_cupti_metric metric;
    const char *const *rollups;
    int count;
    const char *name = luaL_checkstring(L, 2);
    enum tl_status status = check_host(L, 3, &host);
    if (status == TL_OK)
        status = tl_cupti_host_describe(host, name, &metric);
    if (status == TL_OK)
        status = tl_cupti_host_rollups(host, name, &rollups, &count);
    if (status != TL_OK)
        return tlua_refused(L, status);
    lua_createtable(L, 0, 6);
    tlua_set_string(L, "base", metric.base);
    tlua_set_string(L, "kind", metric.kind);
    tlua_set_string(L, "description", metric.description);
    tlua_set_string(L, "hardware", metric.hardware);
    tlua_set_string(L, "unit", metric.unit);
    tlua_strings_push(L, rollups, count);
    lua_setfield(L, -2, "rollups");
    return 1;
}

const char **tlua_strings_check(lua_State *L, int index, const char *what, int *count)
{
    luaL_checktype(L, index, LUA_TTABLE);
    *count = (int)luaL_len(L, index);
    const char **strings = lua_newuserdatauv(L, ((size_t)*count + 1) * sizeof *strings, 0);
    for (int i = 0; i < *count; i++) {
        if (lua_rawgeti(L, index, i + 1) != LUA_TSTRING)
            luaL_error(L, "%s %d is a %s, not a string", what, i + 1, luaL_typename(L, -1));
        strings[i] = lua_tostring(L, -1); /* the table keeps it */
        lua_pop(L, 1);
    }
    return strings;
}

void tlua_strings_push(lua_State *L, const char *const *strings, int count)
{
    lua_createtable(L, count, 0);
    for (int i = 0; i < count; i++) {
        lua_pushstring(L, strings[i]);
        lua_rawseti(L, -2, i + 1);
    }
}

static int metric_passes(lua_State *L)
{
    struct tl_cupti_host *host;
    struct tl_cupti_config *config;
    int count;
    lua_settop(L, 3);
    enum tl_status status = check_host(L, 3, &host);
    const char **names = tlua_strings_check(L, 2, "metric", &count);
    if (status == TL_OK)
        status = tl_cupti_config_new(host, NULL, names, count, &config);
    if (status != TL_OK)
        return tlua_refused(L, status);
    lua_pushinteger(L, config->passes);
    tl_cupti_config_free(config);
    return 1;
}

static const luaL_Reg functions[] = {
    {"chips", chips},
    {"metric_names", metric_names},
    {"metric_check", metric_check},
    {"metric_describe", metric_describe},
    {"metric_passes", metric_passes},
    {NULL, NULL},
};

void tlua_metrics_open(lua_State *L)
{
    luaL_setfuncs(L, functions, 0);
}
