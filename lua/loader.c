/* build/tilelab_core.so: what stock Lua loads. It sets OpenMP's wait policy, which libgomp reads
 * when it is loaded, and only then loads the module proper, build/tilelab_module.so, which is
 * linked to libgomp. Neither is linked to liblua: the interpreter provides its symbols.
 */
#include <dlfcn.h>
#include <lauxlib.h>
#include <lua.h>
#include <stdio.h>
#include <string.h>

__attribute__((visibility("default"))) int luaopen_tilelab_core(lua_State *L);

int luaopen_tilelab_core(lua_State *L)
{
    static const char name[] = "tilelab_module.so";
    char path[4096];
    Dl_info self;
    if (!dladdr((void *)luaopen_tilelab_core, &self) || !self.dli_fname)
        return luaL_error(L, "tilelab: cannot tell where its module lies");
    const char *slash = strrchr(self.dli_fname, '/');
    snprintf(path, sizeof path, "%.*s%s", slash ? (int)(slash + 1 - self.dli_fname) : 0,
             self.dli_fname, name);
    void *module = dlopen(path, RTLD_NOW | RTLD_LOCAL); /* stays loaded as long as the process */
    if (!module)
        return luaL_error(L, "tilelab: %s; run `make`", dlerror());
    lua_CFunction open = (lua_CFunction)dlsym(module, "luaopen_tilelab_core");
    return open ? open(L) : luaL_error(L, "tilelab: %s is no module of tilelab", path);
}
