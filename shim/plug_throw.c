/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exceptions of C++ thrown from C, without a header of PyTorch.
 *
 * c10::OutOfMemoryError is a c10::Error that adds nothing but its name. So its object is made by
 * the constructor of c10::Error, gets the other class's table of virtual functions, and is thrown
 * with the other class's type. The names looked up carry the types of all parameters: where a
 * release changes them, a name is not found, and a simpler exception is thrown.
 *
 * A text is a std::string, of which libstdc++ has two: wheels of PyTorch before 2.7 have the one of
 * before C++11, `Ss` in names. Its constructor is libstdc++'s; that of the other is inline, and done
 * here.
 *
 * Sources: the Itanium C++ ABI (names, tables, __cxa_throw); libstdc++'s bits/basic_string.h;
 * c10/util/Exception.h of 2.0 to 2.15.
 */
#include "plug_throw.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* More than c10::Error takes (128 bytes in 2.15). */
#define OBJECT_BYTES 1024

/* c10::SourceLocation. */
struct location {
    const char *function, *file;
    uint32_t line;
};

/* std::string: a short text lies in `local`. */
struct string {
    char *text;
    size_t length;
    union {
        char local[16];
        size_t capacity;
    } room;
};

struct names {
    void *(*allocate_exception)(size_t size);
    void (*throw_it)(void *object, void *type, void (*destroy)(void *object));
    void *(*allocate)(size_t size);
    void (*release)(void *address);
    void (*make_old)(void **text, const char *from, const void *allocator);
    void (*end_old)(void **text);
    /* Constructors of c10::Error, with a pointer to the text. A release has one of them. */
    void (*construct)(void *object, struct location where, struct string *text);
    void (*construct_old)(void *object, struct location where, void **text);
    void *type, *table;
};

/* A library is found by its name once the process has loaded it, however privately. */
static void *
find(const char *library, const char *name)
{
    void *handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
    void *found = handle ? dlsym(handle, name) : NULL;
    if (handle)
        dlclose(handle);
    return found;
}

/* A function's address goes through a void pointer, as POSIX has it. */
#define FIND(to, library, name)                                                          \
    do {                                                                                 \
        void *found_ = find(library, name);                                              \
        memcpy(&(to), &found_, sizeof found_);                                           \
    } while (0)

static void *
find_in_torch(const char *name)
{
    void *found = find("libc10.so", name); /* since 2.13, before libc10_cuda.so */
    return found ? found : find("libc10_cuda.so", name);
}

static int
find_names(struct names *n)
{
    static const char cxx[] = "libstdc++.so.6";
    FIND(n->allocate_exception, cxx, "__cxa_allocate_exception");
    FIND(n->throw_it, cxx, "__cxa_throw");
    FIND(n->allocate, cxx, "_Znwm");
    FIND(n->release, cxx, "_ZdlPv");
    FIND(n->construct, "libc10.so",
         "_ZN3c105ErrorC1ENS_14SourceLocationENSt7__cxx1112basic_string"
         "IcSt11char_traitsIcESaIcEEE");
    FIND(n->make_old, cxx, "_ZNSsC1EPKcRKSaIcE");
    FIND(n->end_old, cxx, "_ZNSsD1Ev");
    FIND(n->construct_old, "libc10.so", "_ZN3c105ErrorC1ENS_14SourceLocationESs");
    n->type = find_in_torch("_ZTIN3c1016OutOfMemoryErrorE");
    n->table = find_in_torch("_ZTVN3c1016OutOfMemoryErrorE");
    return n->allocate_exception && n->throw_it && n->allocate && n->release &&
           (n->construct || (n->construct_old && n->make_old && n->end_old)) && n->type &&
           n->table;
}

static struct string
make_string(const struct names *n, const char *text)
{
    size_t length = strlen(text);
    size_t capacity = length < sizeof((struct string){0}).room.local
                          ? sizeof((struct string){0}).room.local
                          : length; /* never the short form, which points into itself */
    struct string made = {.text = n->allocate(capacity + 1), .length = length};
    memcpy(made.text, text, length + 1);
    made.room.capacity = capacity;
    return made;
}

static void
construct(const struct names *n, void *object, const char *text)
{
    const struct location where = {"drystone_plug_alloc", "drystone", __LINE__};
    if (n->construct) {
        struct string message = make_string(n, text);
        n->construct(object, where, &message);
        if (message.text != message.room.local) /* else it was taken */
            n->release(message.text);
    } else {
        char allocator = 0; /* std::allocator has no members */
        void *message;
        n->make_old(&message, text, &allocator);
        n->construct_old(object, where, &message);
        n->end_old(&message);
    }
}

_Noreturn void
plug_throw_oom(const char *text)
{
    struct names n;
    if (!find_names(&n))
        plug_throw(text);
    void **object = n.allocate_exception(OBJECT_BYTES);
    construct(&n, object, text);
    void **functions = (void **)n.table + 2; /* behind the offset and the type */
    object[0] = functions;
    void (*destroy)(void *);
    memcpy(&destroy, functions, sizeof destroy); /* the first of a table */
    n.throw_it(object, n.type, destroy);
    abort();
}

_Noreturn void
plug_throw(const char *text)
{
    void (*fail)(const char *function, const char *file, uint32_t line, const char *text);
    void (*throw_bad_alloc)(void);
    FIND(fail, "libc10.so", "_ZN3c106detail14torchCheckFailEPKcS2_jS2_");
    if (fail)
        fail(__func__, "drystone", __LINE__, text);
    FIND(throw_bad_alloc, "libstdc++.so.6", "_ZSt17__throw_bad_allocv");
    if (throw_bad_alloc)
        throw_bad_alloc();
    abort(); /* no C++ in this process: nobody of PyTorch's has called */
}
