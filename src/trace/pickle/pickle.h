/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PICKLE_H
#define DRYI_PICKLE_H

/*
 * The opcodes of Python's pickle, protocols 0 to 5 (CPython, Lib/pickletools.py), shared
 * by the reader, which walks some and refuses the rest by name, and the writer.
 */

#include <stdint.h>
#include <string.h>

enum dryi_opcode {
    DRYI_OP_MARK = 0x28,
    DRYI_OP_EMPTY_TUPLE = 0x29,
    DRYI_OP_STOP = 0x2e,
    DRYI_OP_POP = 0x30,
    DRYI_OP_POP_MARK = 0x31,
    DRYI_OP_DUP = 0x32,
    DRYI_OP_BINBYTES = 0x42,
    DRYI_OP_SHORT_BINBYTES = 0x43,
    DRYI_OP_FLOAT = 0x46,
    DRYI_OP_BINFLOAT = 0x47,
    DRYI_OP_INT = 0x49,
    DRYI_OP_BININT = 0x4a,
    DRYI_OP_BININT1 = 0x4b,
    DRYI_OP_LONG = 0x4c,
    DRYI_OP_BININT2 = 0x4d,
    DRYI_OP_NONE = 0x4e,
    DRYI_OP_PERSID = 0x50,
    DRYI_OP_BINPERSID = 0x51,
    DRYI_OP_REDUCE = 0x52,
    DRYI_OP_STRING = 0x53,
    DRYI_OP_BINSTRING = 0x54,
    DRYI_OP_SHORT_BINSTRING = 0x55,
    DRYI_OP_UNICODE = 0x56,
    DRYI_OP_BINUNICODE = 0x58,
    DRYI_OP_EMPTY_LIST = 0x5d,
    DRYI_OP_APPEND = 0x61,
    DRYI_OP_BUILD = 0x62,
    DRYI_OP_GLOBAL = 0x63,
    DRYI_OP_DICT = 0x64,
    DRYI_OP_APPENDS = 0x65,
    DRYI_OP_GET = 0x67,
    DRYI_OP_BINGET = 0x68,
    DRYI_OP_INST = 0x69,
    DRYI_OP_LONG_BINGET = 0x6a,
    DRYI_OP_LIST = 0x6c,
    DRYI_OP_OBJ = 0x6f,
    DRYI_OP_PUT = 0x70,
    DRYI_OP_BINPUT = 0x71,
    DRYI_OP_LONG_BINPUT = 0x72,
    DRYI_OP_SETITEM = 0x73,
    DRYI_OP_TUPLE = 0x74,
    DRYI_OP_SETITEMS = 0x75,
    DRYI_OP_EMPTY_DICT = 0x7d,
    DRYI_OP_PROTO = 0x80,
    DRYI_OP_NEWOBJ = 0x81,
    DRYI_OP_EXT1 = 0x82,
    DRYI_OP_EXT2 = 0x83,
    DRYI_OP_EXT4 = 0x84,
    DRYI_OP_TUPLE1 = 0x85,
    DRYI_OP_TUPLE2 = 0x86,
    DRYI_OP_TUPLE3 = 0x87,
    DRYI_OP_NEWTRUE = 0x88,
    DRYI_OP_NEWFALSE = 0x89,
    DRYI_OP_LONG1 = 0x8a,
    DRYI_OP_LONG4 = 0x8b,
    DRYI_OP_SHORT_BINUNICODE = 0x8c,
    DRYI_OP_BINUNICODE8 = 0x8d,
    DRYI_OP_BINBYTES8 = 0x8e,
    DRYI_OP_EMPTY_SET = 0x8f,
    DRYI_OP_ADDITEMS = 0x90,
    DRYI_OP_FROZENSET = 0x91,
    DRYI_OP_NEWOBJ_EX = 0x92,
    DRYI_OP_STACK_GLOBAL = 0x93,
    DRYI_OP_MEMOIZE = 0x94,
    DRYI_OP_FRAME = 0x95,
    DRYI_OP_BYTEARRAY8 = 0x96,
    DRYI_OP_NEXT_BUFFER = 0x97,
    DRYI_OP_READONLY_BUFFER = 0x98,
};

/* Return the name of an opcode, such as "SETITEMS"; NULL for an unknown byte. */
const char *dryi_opcode_name(uint8_t opcode);

/* Numbers of a pickle are little-endian and unaligned. */
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "as a pickle's numbers");

static inline uint32_t
dryi_pickle_u32(const unsigned char *bytes)
{
    uint32_t value;
    memcpy(&value, bytes, sizeof value);
    return value;
}

static inline uint64_t
dryi_pickle_u64(const unsigned char *bytes)
{
    uint64_t value;
    memcpy(&value, bytes, sizeof value);
    return value;
}

#endif
