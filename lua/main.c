/* tilelab: a Lua 5.4 interpreter with tilelab_core built in, statically linked.
 *
 * Command line, `arg`, LUA_INIT and LUA_PATH follow the stock interpreter, so that a script runs
 * the same under both. The folder lua/ of the repository is found from the executable's own path;
 * a LUA_PATH that the user set goes before it. A first word that is no file but names a command,
 * lua/tilelab/command/<word>.lua, runs that.
 */
#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "binding.h"
#include "core/provenance.h"

#define PROGRAM "tilelab"

enum { EXIT_USAGE = 2, EXIT_INTERRUPTED = 130, MAX_CODE = 32, ROOT_SIZE = 4096 };

struct command {
    int script; /* position in argv, 0 for none */
    const char *code[MAX_CODE];
    int num_code;
    bool interactive, version, help;
};

static const char usage_text[] =
    "usage: tilelab [options] [script.lua | command] [arguments]\n"
    "Runs a Lua 5.4 script with tilelab built in; without a script, an interactive session.\n"
    "  -e CODE      run CODE (may be repeated), then the script\n"
    "  -i           interactive session, after the script where there is one\n"
    "  -v           print version, commit, Lua release and devices\n"
    "  -h, --help   print this text\n"
    "  -            take the script from standard input\n"
    "  --           end of options\n"
    "Commands, each with --help:\n"
    "  devices      devices of this machine, and whether their counters can be read\n"
    "  groups       groups of metrics\n"
    "  metrics      everything that a chip can count\n"
    "  describe     what a metric means\n"
    "  compare      what became faster or slower between two result files\n"
    "  figures      draws the figures of all records\n"
    "  bench-check  holds the records against what must be reached\n"
    "  document     holds the numbers of README.md against the records\n"
    "  record       measures what the records lack of this GPU\n"
    "and further files of lua/tilelab/command.\n";

static int usage_error(const char *message, const char *option)
{
    fprintf(stderr, PROGRAM ": %s '%s'; see " PROGRAM " --help\n", message, option);
    return EXIT_USAGE;
}

/* Returns 0, or the exit code after a message. */
static int parse_command(struct command *command, int argc, char **argv)
{
    int i = 1;
    for (; i < argc && argv[i][0] == '-' && argv[i][1]; i++) {
        const char *option = argv[i];
        if (strcmp(option, "--") == 0) {
            i++;
            break;
        } else if (strcmp(option, "-h") == 0 || strcmp(option, "--help") == 0) {
            command->help = true;
        } else if (strcmp(option, "-v") == 0 || strcmp(option, "--version") == 0) {
            command->version = true;
        } else if (strcmp(option, "-i") == 0) {
            command->interactive = true;
        } else if (strncmp(option, "-e", 2) == 0) {
            if (!option[2] && i + 1 == argc)
                return usage_error("code is missing after", option);
            if (command->num_code == MAX_CODE)
                return usage_error("too many of", "-e");
            command->code[command->num_code++] = option[2] ? option + 2 : argv[++i];
        } else {
            return usage_error("unknown option", option);
        }
    }
    command->script = i < argc ? i : 0;
    return 0;
}

/* --- running code --- */

/* Leaves error values alone and adds a traceback to everything else. */
static int add_traceback(lua_State *L)
{
    if (tlua_error_kind(L, 1))
        return 1;
    const char *message = lua_tostring(L, 1);
    if (!message) {
        if (luaL_callmeta(L, 1, "__tostring") && lua_type(L, -1) == LUA_TSTRING)
            return 1;
        message = lua_pushfstring(L, "(error value is a %s)", luaL_typename(L, 1));
    }
    luaL_traceback(L, L, message, 1);
    return 1;
}

/* Calls the function below `num_args` arguments; Ctrl-C raises meanwhile. */
static int protected_call(lua_State *L, int num_args, int num_results)
{
    int base = lua_gettop(L) - num_args;
    lua_pushcfunction(L, add_traceback);
    lua_insert(L, base);
    tlua_interrupt_arm(L);
    int status = lua_pcall(L, num_args, num_results, base);
    tlua_interrupt_disarm();
    lua_remove(L, base);
    return status;
}

/* Prints and pops an error; returns the exit code that goes with it. */
static int report(lua_State *L)
{
    const char *kind = tlua_error_kind(L, -1);
    bool interrupted = kind && strcmp(kind, "interrupted") == 0;
    fflush(stdout);
    fprintf(stderr, PROGRAM ": %s\n", luaL_tolstring(L, -1, NULL));
    lua_pop(L, 2);
    return interrupted ? EXIT_INTERRUPTED : EXIT_FAILURE;
}

/* Runs the chunk that a luaL_load function left; `status` is what that returned. */
static int run_chunk(lua_State *L, int status, int num_args)
{
    if (status == LUA_OK)
        status = protected_call(L, num_args, 0);
    return status == LUA_OK ? 0 : report(L);
}

static int run_init(lua_State *L)
{
    const char *name = "LUA_INIT_5_4", *value = getenv(name);
    if (!value) {
        name = "LUA_INIT";
        value = getenv(name);
    }
    if (!value)
        return 0;
    if (value[0] == '@')
        return run_chunk(L, luaL_loadfile(L, value + 1), 0);
    return run_chunk(L, luaL_loadbuffer(L, value, strlen(value), name), 0);
}

/* Pushes the path of the command that `word` names; false where that is a file, or no command.
 * Dashes stand for underscores: bench-check is bench_check.lua. */
static bool push_command_path(lua_State *L, const char *root, const char *word)
{
    struct stat file;
    if (!root[0] || !word[0] || word[0] == '-' ||
        strspn(word, "abcdefghijklmnopqrstuvwxyz-") != strlen(word) ||
        (stat(word, &file) == 0 && !S_ISDIR(file.st_mode)))
        return false;
    lua_pushfstring(L, "%s/lua/tilelab/command/", root);
    luaL_gsub(L, word, "-", "_");
    lua_pushliteral(L, ".lua");
    lua_concat(L, 3);
    if (access(lua_tostring(L, -1), R_OK) == 0)
        return true;
    lua_pop(L, 1);
    return false;
}

static int run_script(lua_State *L, const char *name, int argc, char **argv, int script)
{
    int status = luaL_loadfile(L, strcmp(name, "-") == 0 && strcmp(argv[script - 1], "--") != 0
                                      ? NULL
                                      : name);
    int num_args = 0;
    if (status == LUA_ERRFILE && !strpbrk(name, "./")) {
        lua_pushliteral(L, "; " PROGRAM " --help lists the commands");
        lua_concat(L, 2);
    }
    if (status == LUA_OK) {
        num_args = argc - script - 1;
        luaL_checkstack(L, num_args + 8, "too many arguments");
        for (int i = script + 1; i < argc; i++)
            lua_pushstring(L, argv[i]);
    }
    return run_chunk(L, status, num_args);
}

/* --- the interactive session --- */

/* Reads a line without its newline and pushes it; false at the end of input. */
static bool push_line(lua_State *L, const char *prompt)
{
    luaL_Buffer line;
    int c;
    fputs(prompt, stdout);
    fflush(stdout);
    luaL_buffinit(L, &line);
    while ((c = getc(stdin)) != EOF && c != '\n')
        luaL_addchar(&line, (char)c);
    luaL_pushresult(&line);
    if (c != EOF || lua_rawlen(L, -1) > 0)
        return true;
    lua_pop(L, 1);
    return false;
}

/* Whether a load failed only because the text goes on; pops the message if so. */
static bool is_incomplete(lua_State *L, int status)
{
    static const char mark[] = "<eof>";
    size_t length, mark_length = sizeof mark - 1;
    if (status != LUA_ERRSYNTAX)
        return false;
    const char *message = lua_tolstring(L, -1, &length);
    if (length < mark_length || strcmp(message + length - mark_length, mark) != 0)
        return false;
    lua_pop(L, 1);
    return true;
}

static int load_text(lua_State *L)
{
    size_t length;
    const char *text = lua_tolstring(L, 1, &length);
    return luaL_loadbuffer(L, text, length, "=stdin");
}

/* Reads an expression or statements over as many lines as they take, and leaves the chunk or the
 * message alone on the stack; -1 at the end of input. */
static int load_lines(lua_State *L)
{
    lua_settop(L, 0);
    if (!push_line(L, "> "))
        return -1;
    lua_pushfstring(L, "return %s", lua_tostring(L, 1));
    int status = luaL_loadbuffer(L, lua_tostring(L, -1), lua_rawlen(L, -1), "=stdin");
    lua_remove(L, 2);
    if (status != LUA_OK) {
        lua_pop(L, 1);
        while (is_incomplete(L, status = load_text(L)) && push_line(L, ">> ")) {
            lua_pushliteral(L, "\n");
            lua_insert(L, -2);
            lua_concat(L, 3);
        }
        if (lua_gettop(L) == 1) { /* the input ended within a statement */
            lua_pushliteral(L, "the input ends within a statement");
            status = LUA_ERRSYNTAX;
        }
    }
    lua_remove(L, 1);
    return status;
}

static void print_results(lua_State *L)
{
    int count = lua_gettop(L);
    if (count == 0)
        return;
    luaL_checkstack(L, LUA_MINSTACK, "too many results to print");
    lua_getglobal(L, "print");
    lua_insert(L, 1);
    if (protected_call(L, count, 0) != LUA_OK)
        report(L);
}

static void run_session(lua_State *L)
{
    int status;
    while ((status = load_lines(L)) != -1) {
        if (status == LUA_OK)
            status = protected_call(L, 0, LUA_MULTRET);
        if (status == LUA_OK)
            print_results(L);
        else
            report(L);
        tlua_interrupt_clear();
    }
    lua_settop(L, 0);
    putchar('\n');
}

/* --- setting up --- */

static void set_arg(lua_State *L, int argc, char **argv, int script)
{
    lua_createtable(L, argc - script, script + 1);
    for (int i = 0; i < argc; i++) {
        lua_pushstring(L, argv[i]);
        lua_rawseti(L, -2, i - script);
    }
    lua_setglobal(L, "arg");
}

/* Adds <root>/lua/?.lua to package.path, where root is the nearest folder above the executable that
 * holds lua/tilelab.lua, and leaves root in `path`. Without one (a copied binary) package.path
 * stays as it is, and root is empty. */
static void set_path(lua_State *L, char path[ROOT_SIZE])
{
    ssize_t length = readlink("/proc/self/exe", path, ROOT_SIZE - 32);
    path[length < 0 ? 0 : length] = 0;
    for (char *slash; (slash = strrchr(path, '/')) != NULL;) {
        strcpy(slash, "/lua/tilelab.lua");
        if (access(path, R_OK) == 0) {
            *slash = 0;
            bool users_first = getenv("LUA_PATH_5_4") || getenv("LUA_PATH");
            lua_getglobal(L, "package");
            lua_getfield(L, -1, "path");
            const char *before = lua_tostring(L, -1);
            if (users_first)
                lua_pushfstring(L, "%s;%s/lua/?.lua", before, path);
            else
                lua_pushfstring(L, "%s/lua/?.lua;%s", path, before);
            lua_setfield(L, -3, "path");
            lua_pop(L, 2);
            return;
        }
        *slash = 0;
    }
}

static void print_version(void)
{
    const char *name;
    printf("tilelab %s\ncommit %s%s\n%s\ncompiled by %s, CUDA %s\n", tl_version(), tl_commit(),
           tl_commit_dirty() ? " (with uncommitted changes)" : "", LUA_RELEASE, tl_compiler(),
           tl_cuda_toolkit());
    for (int i = 0; (name = tl_device_name_at(i)) != NULL; i++) {
        struct tl_device *device;
        if (tl_device_open(name, &device) == TL_OK)
            printf("device %s: %s, %.1f GiB, %d %s\n", device->name, device->model,
                   (double)device->memory_bytes / (1 << 30), device->multiprocessors,
                   device->arch ? "multiprocessors" : "threads");
        else
            printf("device %s: %s\n", name, tl_error_message());
    }
}

/* Everything that may raise runs in here. Returns the exit code as its result. */
static int run(lua_State *L)
{
    struct command *command = lua_touserdata(L, 1);
    int argc = (int)lua_tointeger(L, 2);
    char **argv = lua_touserdata(L, 3);
    lua_settop(L, 0);
    luaL_checkversion(L);
    luaL_openlibs(L);
    luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_PRELOAD_TABLE);
    lua_pushcfunction(L, luaopen_tilelab_core);
    lua_setfield(L, -2, "tilelab_core");
    lua_pop(L, 1);
    char root[ROOT_SIZE];
    set_path(L, root);
    set_arg(L, argc, argv, command->script);
    int code = run_init(L);
    for (int i = 0; i < command->num_code && code == 0; i++) {
        const char *text = command->code[i];
        code = run_chunk(L, luaL_loadbuffer(L, text, strlen(text), "=(command line)"), 0);
    }
    bool on_terminal = isatty(STDIN_FILENO);
    bool nothing = !command->script && !command->num_code && !command->version;
    if (command->script && code == 0) {
        const char *name = argv[command->script];
        if (push_command_path(L, root, name))
            name = lua_tostring(L, -1); /* alive as long as it is on the stack */
        code = run_script(L, name, argc, argv, command->script);
    }
    else if (nothing && !command->interactive && !on_terminal)
        code = run_chunk(L, luaL_loadfile(L, NULL), 0);
    if (command->interactive || (nothing && on_terminal)) {
        printf("tilelab %s, %s; lab = require \"tilelab\"\n", tl_version(), LUA_RELEASE);
        run_session(L);
    }
    lua_pushinteger(L, code);
    return 1;
}

int main(int argc, char **argv)
{
    struct command command;
    memset(&command, 0, sizeof command);
    int code = parse_command(&command, argc, argv);
    if (code != 0)
        return code;
    if (command.help) {
        fputs(usage_text, stdout);
        return EXIT_SUCCESS;
    }
    if (command.version)
        print_version();
    lua_State *L = luaL_newstate();
    if (!L) {
        fputs(PROGRAM ": no memory for a Lua state\n", stderr);
        return EXIT_FAILURE;
    }
    lua_pushcfunction(L, run);
    lua_pushlightuserdata(L, &command);
    lua_pushinteger(L, argc);
    lua_pushlightuserdata(L, argv);
    code = lua_pcall(L, 3, 1, 0) == LUA_OK ? (int)lua_tointeger(L, -1) : report(L);
    lua_close(L);
    return code;
}
