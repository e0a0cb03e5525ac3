/* Ctrl-C, alike in the host and under a stock interpreter.
 *
 * The handler may do almost nothing: it sets a flag and Lua's hook, which lua_sethook allows from a
 * signal; the hook then raises where Lua is consistent, so that <close> variables run. SA_RESETHAND
 * puts the default action back, and a second Ctrl-C ends a process that does not react. Hooks
 * belong to a coroutine, therefore tlua_interrupt_check stands in the functions that scripts spend
 * their time in, and raises in whichever coroutine calls them.
 */
#include "binding.h"

#include <signal.h>
#include <string.h>

static volatile sig_atomic_t pending; /* to be raised */
static volatile sig_atomic_t caught;  /* since the last clear */
static lua_State *volatile target;
static struct sigaction previous;
static int depth;

static void raise_interruption(lua_State *L)
{
    pending = 0;
    lua_sethook(target, NULL, 0, 0);
    tlua_error_push(L, "interrupted", "interrupted", NULL);
    lua_error(L);
}

static void on_hook(lua_State *L, lua_Debug *debug)
{
    (void)debug;
    lua_sethook(L, NULL, 0, 0);
    if (pending)
        raise_interruption(L);
}

static void on_signal(int number)
{
    (void)number;
    caught = pending = 1;
    lua_sethook(target, on_hook, LUA_MASKCALL | LUA_MASKRET | LUA_MASKLINE | LUA_MASKCOUNT, 1);
}

void tlua_interrupt_arm(lua_State *L)
{
    if (depth++ > 0)
        return;
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_signal;
    action.sa_flags = (int)SA_RESETHAND;
    sigemptyset(&action.sa_mask);
    target = L;
    sigaction(SIGINT, &action, &previous);
}

void tlua_interrupt_disarm(void)
{
    if (depth > 0 && --depth == 0)
        sigaction(SIGINT, &previous, NULL);
}

bool tlua_interrupted(void)
{
    return caught;
}

void tlua_interrupt_clear(void)
{
    caught = pending = 0;
}

void tlua_interrupt_check(lua_State *L)
{
    if (pending)
        raise_interruption(L);
}

/* core.interrupt_arm(): from here to the matching interrupt_disarm, Ctrl-C raises. Under a stock
 * interpreter this replaces its own handler, which would raise a plain text. */
static int interrupt_arm(lua_State *L)
{
    lua_rawgeti(L, LUA_REGISTRYINDEX, LUA_RIDX_MAINTHREAD);
    lua_State *main_thread = lua_tothread(L, -1);
    tlua_interrupt_arm(main_thread ? main_thread : L);
    return 0;
}

static int interrupt_disarm(lua_State *L)
{
    (void)L;
    tlua_interrupt_disarm();
    return 0;
}

/* core.interrupted() -> whether Ctrl-C was pressed since the script started */
static int interrupted(lua_State *L)
{
    lua_pushboolean(L, tlua_interrupted());
    return 1;
}

static const luaL_Reg functions[] = {
    {"interrupt_arm", interrupt_arm},
    {"interrupt_disarm", interrupt_disarm},
    {"interrupted", interrupted},
    {NULL, NULL},
};

void tlua_interrupt_open(lua_State *L)
{
    luaL_setfuncs(L, functions, 0);
}
