/* A cuDNN that only pretends: it keeps descriptors and counts them, finds as many configurations as
 * the test says, and notes what a run was given. Found through TILELAB_LIBRARY_PATH in place of the
 * real one. */
#ifndef TL_TESTS_FAKE_CUDNN_H
#define TL_TESTS_FAKE_CUDNN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fake_cudnn {
    size_t version;
    int configs;           /* that each heuristic finds */
    bool nondeterministic; /* what their engines are noted as */
    int64_t workspace_bytes;
    int failing, status; /* the call that fails, from 1; 0: none. And with which status. */

    int calls; /* that may fail */
    int live;  /* descriptors that exist */
    int operations;
    int runs, count; /* of the last run: */
    int64_t id[16];
    void *at[16];
    float number[16]; /* behind at[i], where `scalar` has its id */
    void *workspace, *stream;
    uint64_t scalars; /* bits by id: tensors that are read from the host */
};

#endif
