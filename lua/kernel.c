/* Lists of what the registry holds.
 *
 *   lab.operations() -> list of {name, equation, dims = {"m", ...},
 *       args = list of {name, role = "in" | "out" | "inout" | "host", optional, shape,
 *                       dtypes = {...}},
 *       params = list of {name, choices = {"nt", ...} | nil, default, min, max}}
 *   lab.kernels([operation]) -> list of {operation, variant, arch, summary,
 *       dtypes = {...} the float types it computes on,
 *       tunables = list of {name, default, choices = {64, 128}}}; raises for an unknown operation
 *
 * A default that is absent must be given by the caller.
 */
#include "binding.h"

#include <math.h>
#include <string.h>

#include "core/kernel.h"

/* Pushes the words of a list separated by spaces. */
static void push_words(lua_State *L, const char *words)
{
    lua_newtable(L);
    for (int i = 1; *words; i++) {
        size_t length = strcspn(words, " ");
        lua_pushlstring(L, words, length);
        lua_rawseti(L, -2, i);
        words += length;
        words += strspn(words, " ");
    }
}

/* The names of a set of dtypes as the field `dtypes`. */
static void set_dtypes(lua_State *L, unsigned set)
{
    lua_newtable(L);
    for (int dtype = 0, count = 0; dtype < TL_NUM_DTYPES; dtype++) {
        if (set & TL_DTYPE_BIT(dtype)) {
            lua_pushstring(L, tl_dtype_name((enum tl_dtype)dtype));
            lua_rawseti(L, -2, ++count);
        }
    }
    lua_setfield(L, -2, "dtypes");
}

static void push_arg(lua_State *L, const struct tl_arg_spec *spec)
{
    static const char *const roles[] = {
        [TL_IN] = "in", [TL_OUT] = "out", [TL_INOUT] = "inout", [TL_IN_HOST] = "host"};
    lua_newtable(L);
    tlua_set_string(L, "name", spec->name);
    tlua_set_string(L, "role", roles[spec->role]);
    tlua_set_string(L, "shape", spec->shape);
    tlua_set_boolean(L, "optional", spec->optional);
    set_dtypes(L, spec->dtypes);
}

/* The word at `position` of a list of choices, as pushed. */
static void push_word(lua_State *L, const char *words, int position)
{
    push_words(L, words);
    lua_rawgeti(L, -1, position + 1);
    lua_remove(L, -2);
}

static void push_param(lua_State *L, const struct tl_param_spec *spec)
{
    lua_newtable(L);
    tlua_set_string(L, "name", spec->name);
    if (spec->choices) {
        push_words(L, spec->choices);
        lua_setfield(L, -2, "choices");
    } else {
        tlua_set_number(L, "min", spec->min);
        tlua_set_number(L, "max", spec->max);
    }
    if (isnan(spec->fallback))
        return;
    if (spec->choices)
        push_word(L, spec->choices, (int)spec->fallback);
    else
        lua_pushnumber(L, spec->fallback);
    lua_setfield(L, -2, "default");
}

static void push_operation(lua_State *L, const struct tl_operation *operation)
{
    lua_newtable(L);
    tlua_set_string(L, "name", operation->name);
    tlua_set_string(L, "equation", operation->equation);
    push_words(L, operation->dims);
    lua_setfield(L, -2, "dims");
    lua_newtable(L);
    for (int i = 0; i < TL_MAX_ARGS && operation->args[i].name; i++) {
        push_arg(L, &operation->args[i]);
        lua_rawseti(L, -2, i + 1);
    }
    lua_setfield(L, -2, "args");
    lua_newtable(L);
    for (int i = 0; i < TL_MAX_PARAMS && operation->params[i].name; i++) {
        push_param(L, &operation->params[i]);
        lua_rawseti(L, -2, i + 1);
    }
    lua_setfield(L, -2, "params");
}

static void push_tunable(lua_State *L, const struct tl_tunable *tunable)
{
    lua_newtable(L);
    tlua_set_string(L, "name", tunable->name);
    tlua_set_integer(L, "default", tunable->fallback);
    lua_newtable(L);
    for (int i = 0; tunable->choices[i]; i++) {
        lua_pushinteger(L, tunable->choices[i]);
        lua_rawseti(L, -2, i + 1);
    }
    lua_setfield(L, -2, "choices");
}

/* What the operation's arguments allow and the kernel does not narrow. */
static unsigned float_dtypes(const struct tl_kernel *kernel)
{
    const struct tl_operation *operation = NULL;
    unsigned allowed = 0;
    if (tl_operation_find(kernel->operation, &operation) == TL_OK)
        for (int i = 0; i < TL_MAX_ARGS && operation->args[i].name; i++)
            allowed |= operation->args[i].dtypes & TL_FLOATS;
    return kernel->dtypes ? allowed & kernel->dtypes : allowed;
}

static void push_kernel(lua_State *L, const struct tl_kernel *kernel)
{
    lua_newtable(L);
    tlua_set_string(L, "operation", kernel->operation);
    tlua_set_string(L, "variant", kernel->variant);
    tlua_set_string(L, "arch", kernel->arch);
    tlua_set_string(L, "summary", kernel->summary);
    set_dtypes(L, float_dtypes(kernel));
    lua_newtable(L);
    for (int i = 0; i < TL_MAX_TUNABLES && kernel->tunables[i].name; i++) {
        push_tunable(L, &kernel->tunables[i]);
        lua_rawseti(L, -2, i + 1);
    }
    lua_setfield(L, -2, "tunables");
}

static int operations(lua_State *L)
{
    const struct tl_operation *operation;
    lua_newtable(L);
    for (int i = 0; (operation = tl_operation_at(i)) != NULL; i++) {
        push_operation(L, operation);
        lua_rawseti(L, -2, i + 1);
    }
    return 1;
}

static int kernels(lua_State *L)
{
    const char *wanted = luaL_optstring(L, 1, NULL);
    const struct tl_operation *operation;
    const struct tl_kernel *kernel;
    if (wanted) {
        enum tl_status status = tl_operation_find(wanted, &operation);
        if (status != TL_OK)
            return tlua_raise(L, status);
    }
    lua_newtable(L);
    for (int i = 0, count = 0; (kernel = tl_kernel_at(i)) != NULL; i++) {
        if (wanted && strcmp(kernel->operation, wanted) != 0)
            continue;
        push_kernel(L, kernel);
        lua_rawseti(L, -2, ++count);
    }
    return 1;
}

static const luaL_Reg functions[] = {
    {"operations", operations},
    {"kernels", kernels},
    {NULL, NULL},
};

void tlua_kernel_open(lua_State *L)
{
    luaL_setfuncs(L, functions, 0);
}
