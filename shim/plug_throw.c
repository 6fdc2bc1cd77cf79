/* SPDX-License-Identifier: Apache-2.0 */
/*
 * C++ exceptions thrown from C, without a header of PyTorch.
 *
 * c10::OutOfMemoryError is a c10::Error that adds nothing but its name. So the object is built by
 * the constructor of c10::Error, gets the derived class's virtual table, and is thrown with the
 * derived class's type. The names looked up encode the types of all parameters. If a release
 * changes them, the name is not found, and a simpler exception is thrown.
 *
 * The text is a std::string, of which libstdc++ has two ABIs. PyTorch's wheels before 2.7 use the
 * one from before C++11, `Ss` in names. Its constructor is in libstdc++; the other's is inline,
 * and replicated here.
 *
 * Sources: the Itanium C++ ABI (names, tables, __cxa_throw); libstdc++'s bits/basic_string.h;
 * c10/util/Exception.h of 2.0 to 2.15.
 */
#include "plug_throw.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* A generous size for c10::Error, which takes 128 bytes in 2.15. */
#define OBJECT_BYTES 1024

/* c10::SourceLocation. */
struct location {
    const char *function, *file;
    uint32_t line;
};

/* std::string of the C++11 ABI: a short text is stored in `local`. */
struct string {
    char *text;
    size_t length;
    union {
        char local[16];
        size_t capacity;
    } storage;
};

struct names {
    void *(*allocate_exception)(size_t size);
    void (*throw_it)(void *object, void *type, void (*destroy)(void *object));
    void *(*allocate)(size_t size);
    void (*release)(void *address);
    void (*make_old)(void **text, const char *from, const void *allocator);
    void (*end_old)(void **text);
    /*
     * Constructors of c10::Error, with a pointer to the text. A release has one of them.
     */
    void (*construct)(void *object, struct location where, struct string *text);
    void (*construct_old)(void *object, struct location where, void **text);
    void *type, *table;
};

/* Find a symbol in a loaded library, even if it was loaded with RTLD_LOCAL. */
static void *
find(const char *library, const char *name)
{
    void *handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
    void *found = handle ? dlsym(handle, name) : NULL;
    if (handle)
        dlclose(handle);
    return found;
}

/* Copy the address: POSIX lets a void pointer hold a function's address. */
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
    /* Never the short form, which contains a pointer to itself. */
    size_t capacity = length < sizeof((struct string){0}).storage.local
                          ? sizeof((struct string){0}).storage.local
                          : length;
    struct string made = {.text = n->allocate(capacity + 1), .length = length};
    memcpy(made.text, text, length + 1);
    made.storage.capacity = capacity;
    return made;
}

static void
construct(const struct names *n, void *object, const char *text)
{
    const struct location where = {"drystone_plug_alloc", "drystone", __LINE__};
    if (n->construct) {
        struct string message = make_string(n, text);
        n->construct(object, where, &message);
        if (message.text != message.storage.local) /* otherwise it was moved from */
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
    void **functions = (void **)n.table + 2; /* after the offset and the type */
    object[0] = functions;
    void (*destroy)(void *);
    memcpy(&destroy, functions, sizeof destroy); /* the table's first function */
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
    abort(); /* no C++ in this process, so PyTorch was not the caller */
}
