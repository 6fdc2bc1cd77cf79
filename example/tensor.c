/* SPDX-License-Identifier: Apache-2.0 */

/*
 * tensor: make a tensor on huge pages of a pool, or print what the pool lacks for it.
 *
 *     cc tensor.c $(pkg-config --cflags --libs drystone)
 *     ./a.out bfloat16 1024 1024 256
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <drystone/tensor.h>

#define DIMENSIONS_MAX 8

/*
 * Read "DTYPE NUMBER..." into `form` and `shape`; without arguments, take a shape and
 * type as an example. Returns 0 on success.
 */
static int
read_form(int argc, char **argv, int64_t shape[DIMENSIONS_MAX],
          struct dry_tensor_form *form)
{
    struct dry_error err;
    if (argc < 2) {
        shape[0] = shape[1] = shape[2] = 1024;
        form->ndim = 3;
    }
    if (dry_dtype_parse(argc < 2 ? "float32" : argv[1], &form->dtype, &err) != DRY_OK) {
        fprintf(stderr, "tensor: %s\n", err.text);
        return 1;
    }
    for (int i = 2; i < argc && form->ndim < DIMENSIONS_MAX; i++) {
        char *end;
        errno = 0;
        shape[form->ndim++] = strtoll(argv[i], &end, 10);
        if (errno || *end || end == argv[i]) {
            fprintf(stderr, "tensor: '%s' is no number\n", argv[i]);
            return 1;
        }
    }
    form->shape = shape;
    return 0;
}

/* Print what an administrator would have to type. */
static void
print_need(const struct dry_tensor_options *options)
{
    struct dry_pages_need need = DRY_INIT(struct dry_pages_need);
    struct dry_error err;
    if (dry_tensor_read_need(options, &need, &err) != DRY_OK)
        return;
    printf("%" PRIu64 " pages of %" PRIu64 " bytes, of which %" PRIu64 " are missing\n",
           need.page_count, need.page_bytes, need.missing_count);
    for (size_t i = 0; i < need.part_count; i++) {
        char command[160];
        if (dry_pages_need_command(&need, i, command, sizeof command) > 0)
            printf("    %s\n", command);
    }
}

/* Consume a tensor: read it, and give it back. */
static void
consume(struct dry_dlpack_versioned *managed)
{
    const struct dry_dlpack_tensor *t = &managed->tensor;
    printf("strides:");
    for (int32_t i = 0; i < t->ndim; i++)
        printf(" %" PRId64, t->strides[i]);
    printf("\n");
    managed->deleter(managed);
}

int
main(int argc, char **argv)
{
    int64_t shape[DIMENSIONS_MAX];
    struct dry_pages_options pages;
    struct dry_tensor_options options;
    struct dry_tensor *tensor = NULL;
    struct dry_dlpack_versioned *managed = NULL;
    struct dry_tensor_info info = DRY_INIT(struct dry_tensor_info);
    struct dry_error err;
    dry_pages_options_init(&pages);
    pages.kind = DRY_PAGES_POOL;
    pages.policy = DRY_PAGES_STRICT;
    dry_tensor_options_init(&options);
    options.pages = &pages;
    if (read_form(argc, argv, shape, &options.form) != 0)
        return 2;
    print_need(&options);
    if (dry_tensor_create(&options, &tensor, NULL, &err) != DRY_OK) {
        printf("%s\n", err.text);
        pages.policy = DRY_PAGES_PREFER; /* other pages will do */
        pages.kind = DRY_PAGES_TRANSPARENT;
        if (dry_tensor_create(&options, &tensor, NULL, &err) != DRY_OK) {
            fprintf(stderr, "tensor: %s\n", err.text);
            return 1;
        }
    }
    dry_tensor_get_info(tensor, &info);
    if (info.address)
        memset(info.address, 1, info.bytes);
    if (dry_tensor_export(tensor, NULL, &managed, &err) == DRY_OK)
        consume(managed);
    dry_tensor_destroy(tensor);
    return 0;
}
