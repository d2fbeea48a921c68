/* SPDX-FileCopyrightText: The Tutti authors
 * SPDX-License-Identifier: Apache-2.0 */

/* tutti.h - the C ABI of Tutti, a collective-communication runtime.
 *
 * Conventions, valid for every declaration below unless it says otherwise
 *
 *  1. Handles (tutti_comm_t, tutti_request_t, ...) are opaque values, never addresses. A handle that was destroyed is
 *     recognised: using it again returns TUTTI_ERR_HANDLE. NULL is the null handle.
 *  2. Every function returns a tutti_status_t. TUTTI_OK is 0, errors are negative. Outputs are written on TUTTI_OK only.
 *     tutti_last_error() gives the calling thread's last message: what was wrong, with what value, and what to do.
 *  3. Counts are elements of the data type, uint64_t, and may exceed 2^31. Sizes in bytes end in _bytes, times in _ns or
 *     _ms. A count of zero is valid everywhere and then buffers may be NULL. Buffers may have any alignment.
 *  4. Buffers belong to the caller. A blocking call is done with them on return; a non-blocking one when its request has
 *     completed, with success or not. After an error nothing reads or writes them any more; the contents of a receive
 *     buffer are then unspecified.
 *  5. In place: pass the same pointer as send and receive buffer, or TUTTI_IN_PLACE as the send buffer. Any other overlap
 *     of a call's buffers is refused with TUTTI_ERR_ARGUMENT.
 *  6. Collective calls must be made by all ranks of a communicator, in the same order, with matching arguments. Different
 *     communicators may be used by different threads at the same time. On one communicator the caller orders collectives;
 *     point-to-point calls are free.
 *  7. "Blocking" means: returns when the local part is complete, when a peer has failed, when the communicator was aborted,
 *     or when its timeout has passed. No call waits for ever for a dead peer.
 *  8. Option structures start with struct_size and are filled by their _init function. Zero means the default.
 *  9. After fork() the child may exec or exit; its calls return TUTTI_ERR_FORKED.
 * 10. Strings returned as const char* are never NULL, belong to Tutti and stay valid as their function says. */

#ifndef TUTTI_TUTTI_H
#define TUTTI_TUTTI_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(TUTTI_STATIC) || !defined(__GNUC__)
#define TUTTI_API
#else
#define TUTTI_API __attribute__((visibility("default")))
#endif

/* ---- version --------------------------------------------------------------------------------------------------- */

#define TUTTI_VERSION_MAJOR 0
#define TUTTI_VERSION_MINOR 1
#define TUTTI_VERSION_PATCH 0

/* Version of the binary interface. The build takes the shared library's soname from this line. */
#define TUTTI_ABI_VERSION 0

/* The version of the library that is loaded (which may differ from the macros above). Any pointer may be NULL. */
typedef int32_t tutti_status_t;
TUTTI_API tutti_status_t tutti_get_version(int* major, int* minor, int* patch);

/* ---- status ---------------------------------------------------------------------------------------------------- */

/* Codes are grouped by the largest thing that is broken, so that the remedy is visible in the hundreds digit. */
enum {
  TUTTI_OK = 0,

  /* -1xx, the call: nothing was sent, communicator and peers are as before. Correct the arguments and call again. */
  TUTTI_ERR_ARGUMENT = -101,    /* an argument is out of range, NULL, overlapping */
  TUTTI_ERR_TYPE = -102,        /* unknown data type */
  TUTTI_ERR_OP = -103,          /* unknown reduction operation, or not defined for the type */
  TUTTI_ERR_RANK = -104,        /* rank or root outside [0, size) */
  TUTTI_ERR_HANDLE = -105,      /* handle is null, destroyed, or of another kind */
  TUTTI_ERR_UNSUPPORTED = -106, /* the combination is valid but not offered */
  TUTTI_ERR_CONCURRENT = -107,  /* two threads in collectives of one communicator */
  TUTTI_ERR_TRUNCATED = -108,   /* a message was longer than the receive buffer; the buffer holds its beginning */
  TUTTI_ERR_CONFIG = -109,      /* a setting is unknown or its value is bad */
  TUTTI_ERR_SIZE = -110,        /* a size in bytes does not fit into 63 bits */
  TUTTI_ERR_CANCELLED = -111,   /* tutti_cancel withdrew the receive before a message came for it */

  /* -2xx, the communicator: it cannot be used for further collectives. Destroy it; others are not affected. */
  TUTTI_ERR_MISMATCH = -201, /* ranks called different collectives, or with different arguments */
  TUTTI_ERR_ABORTED = -202,  /* tutti_comm_abort was called here or on a peer */
  TUTTI_ERR_TIMEOUT = -203,  /* the communicator's timeout passed */

  /* -3xx, a peer or the way to it. */
  TUTTI_ERR_PEER_FAILED = -301, /* a peer died or its link broke; the message names it */
  TUTTI_ERR_CONNECT = -302,     /* a peer or the rendezvous could not be reached in time */
  TUTTI_ERR_AUTH = -303,        /* job secrets differ, or the other side is not part of this job */
  TUTTI_ERR_PROTOCOL = -304,    /* the other side sent bytes that Tutti would not send */
  TUTTI_ERR_VERSION = -305,     /* the other side runs an incompatible version */
  TUTTI_ERR_MISSING_RANK = -306, /* not all ranks arrived at the rendezvous in time; the message names the missing */

  /* -4xx, this process or machine. */
  TUTTI_ERR_MEMORY = -401,   /* out of memory */
  TUTTI_ERR_RESOURCE = -402, /* out of descriptors, ports, shared memory: the message gives need and limit */
  TUTTI_ERR_SYSTEM = -403,   /* a system call failed; the message names it */
  TUTTI_ERR_FORKED = -404,   /* called in a forked child of the process that created the handle */
  TUTTI_ERR_ENVIRONMENT = -405, /* the launcher's environment is missing or contradicts itself */
  TUTTI_ERR_INTERNAL = -499  /* a bug in Tutti; please report the message */
};

/* The name of a status ("TUTTI_ERR_RANK"); valid for ever. Never fails: an unknown number gives "unknown status". */
TUTTI_API const char* tutti_status_string(tutti_status_t status);

/* The calling thread's message of its last failing call; valid until that thread's next call. "" if none failed. */
TUTTI_API const char* tutti_last_error(void);

/* ---- data types and operations --------------------------------------------------------------------------------- */

typedef int32_t tutti_dtype_t;
enum {
  TUTTI_INT8 = 0,
  TUTTI_UINT8 = 1,
  TUTTI_INT16 = 2,
  TUTTI_UINT16 = 3,
  TUTTI_INT32 = 4,
  TUTTI_UINT32 = 5,
  TUTTI_INT64 = 6,
  TUTTI_UINT64 = 7,
  TUTTI_FLOAT16 = 8,   /* IEEE binary16; sums are formed in binary32 and rounded once per reduction */
  TUTTI_BFLOAT16 = 9,  /* likewise */
  TUTTI_FLOAT32 = 10,
  TUTTI_FLOAT64 = 11,
  TUTTI_FLOAT8_E4M3 = 12, /* OCP FP8 e4m3 ("e4m3fn"), folded as FLOAT16. No infinity: what would round above 448 is NaN */
  TUTTI_FLOAT8_E5M2 = 13, /* OCP FP8 e5m2, likewise; it has infinity: what would round above 57344 */
  TUTTI_COMPLEX64 = 14,   /* two FLOAT32: real, imaginary */
  TUTTI_COMPLEX128 = 15,  /* two FLOAT64 */
  TUTTI_BOOL = 16,        /* one byte; any value but 0 is true; results are 0 or 1 */
  TUTTI_BYTE = 17,        /* eight bits without a meaning */
  /* A value and where it was found, laid out as the C structure { value; int32_t index; } with the compiler's padding. */
  TUTTI_FLOAT32_INT32 = 18, /* 8 bytes */
  TUTTI_FLOAT64_INT32 = 19, /* 16 bytes */
  TUTTI_INT16_INT32 = 20,   /* 8 bytes */
  TUTTI_INT32_INT32 = 21,   /* 8 bytes */
  TUTTI_INT64_INT32 = 22    /* 16 bytes */
};

/* A call with an operation that is not defined for its type returns TUTTI_ERR_OP before anything is sent. Defined are:
 *
 *                          sum prod avg   min max   band bor bxor   land lor lxor   minloc maxloc
 *   integers                *   *    *     *   *      *   *   *       *   *   *
 *   floats of any size      *   *    *     *   *
 *   complex                 *   *    *
 *   bool                    *   *          *   *                      *   *   *
 *   byte                                              *   *   *
 *   pairs                                                                             *      *
 *
 * Integer sum and prod wrap modulo 2^bits. avg is sum divided by the number of ranks, once, at the end; for integers the
 * wrapped sum is divided with truncation towards zero (as C).
 * min and max propagate NaN; of -0 and +0 the smaller is -0. Every NaN that a reduction gives is the same one: positive, quiet,
 * without payload.
 * FLOAT8: overflow shows (NaN, infinity), as where PyTorch converts; NCCL clamps to the largest finite number instead.
 * The product of complex numbers is (ac - bd) + (ad + bc)i, each operation rounded; no rescue of infinities as in C's Annex G.
 * bool is the algebra of truth values: sum and max are "or", prod and min are "and".
 * land, lor, lxor take any value but 0 as true and give 0 or 1 of the type.
 * minloc and maxloc give the value that min or max gives, and the lowest index that it is found with; NaN is found with its
 * index as well. Padding in their results is zero. */
typedef int32_t tutti_op_t;
enum {
  TUTTI_SUM = 0,
  TUTTI_PROD = 1,
  TUTTI_MIN = 2,
  TUTTI_MAX = 3,
  TUTTI_AVG = 4,
  TUTTI_BAND = 5, /* bitwise and, or, exclusive or */
  TUTTI_BOR = 6,
  TUTTI_BXOR = 7,
  TUTTI_LAND = 8, /* logical and, or, exclusive or */
  TUTTI_LOR = 9,
  TUTTI_LXOR = 10,
  TUTTI_MINLOC = 11, /* the smallest, or largest, value and its index */
  TUTTI_MAXLOC = 12
};

/* Elements and operations of the caller's. Their numbers are used like those above, in any communicator and by any thread,
 * until they are destroyed; calls that were started before go on. All ranks create theirs alike.
 *
 * A type is a number of bytes, at most TUTTI_MAX_TYPE_BYTES; only an operation of the caller's can fold it.
 *
 * An operation folds count elements: right_and_result[i] = left[i] op right_and_result[i]. It must be associative. Where it
 * does not commute (commutes = 0), contributions are folded in the order of ranks. The function works for every type that it
 * is used with. It is called from whichever thread makes progress, by one at a time in a context, and must not call Tutti. */
#define TUTTI_MAX_TYPE_BYTES 4096
typedef void (*tutti_op_function_t)(const void* left, void* right_and_result, uint64_t count, tutti_dtype_t dtype,
                                    void* user);
TUTTI_API tutti_status_t tutti_type_create(size_t size_bytes, tutti_dtype_t* dtype);
TUTTI_API tutti_status_t tutti_type_destroy(tutti_dtype_t dtype);
TUTTI_API tutti_status_t tutti_op_create(tutti_op_function_t function, int commutes, void* user, tutti_op_t* op);
/* The sum of contributions that are multiplied by this rank's factor first; for floats and complex numbers. */
TUTTI_API tutti_status_t tutti_op_create_scaled_sum(double factor, tutti_op_t* op);
TUTTI_API tutti_status_t tutti_op_destroy(tutti_op_t op);

/* Bytes of one element; 0 for an unknown type. */
TUTTI_API size_t tutti_dtype_size_bytes(tutti_dtype_t dtype);
/* "float32", "sum", ...; "unknown" for an unknown number; valid for ever. */
TUTTI_API const char* tutti_dtype_name(tutti_dtype_t dtype);
TUTTI_API const char* tutti_op_name(tutti_op_t op);

#define TUTTI_IN_PLACE ((void*)(intptr_t)-1)

/* ---- configuration --------------------------------------------------------------------------------------------- */

/* A set of settings. Order of precedence: what tutti_config_set gave, the environment (TUTTI_<NAME>), the default.
 * `tutti-info config` lists all settings. A configuration is copied where it is used and may be destroyed afterwards. */
typedef struct tutti_config_s* tutti_config_t;
TUTTI_API tutti_status_t tutti_config_create(tutti_config_t* config);
/* name is lower-case ("tcp_window_bytes"); value is text ("256K"). TUTTI_ERR_CONFIG names the nearest known setting. */
TUTTI_API tutti_status_t tutti_config_set(tutti_config_t config, const char* name, const char* value);
TUTTI_API tutti_status_t tutti_config_destroy(tutti_config_t config);

/* ---- communicators --------------------------------------------------------------------------------------------- */

typedef struct tutti_comm_s* tutti_comm_t;
typedef struct tutti_request_s* tutti_request_t;
typedef struct tutti_context_s* tutti_context_t;

enum { TUTTI_LOG_ERROR = 0, TUTTI_LOG_WARN = 1, TUTTI_LOG_INFO = 2, TUTTI_LOG_DEBUG = 3, TUTTI_LOG_TRACE = 4 };

/* Hooks for embedders; any may be NULL. They are called with no lock of Tutti held. log: one complete line without newline,
 * from any thread. alloc/free: all memory of transports and engine that outlives a call; alloc returns NULL when out of
 * memory. thread_start runs body(arg) on a new thread and returns a token, thread_join waits for it to end. */
typedef struct tutti_hooks {
  size_t struct_size;
  void* user; /* first argument of every hook */
  void (*log)(void* user, int level, const char* line);
  void* (*alloc)(void* user, size_t bytes, size_t alignment);
  void (*free)(void* user, void* memory);
  void* (*thread_start)(void* user, void (*body)(void*), void* arg);
  void (*thread_join)(void* user, void* token);
} tutti_hooks_t;
TUTTI_API tutti_status_t tutti_hooks_init(tutti_hooks_t* hooks);

typedef struct tutti_comm_options {
  size_t struct_size;
  tutti_config_t config;      /* NULL: environment and defaults */
  const tutti_hooks_t* hooks; /* NULL: none. Copied. */
  int64_t timeout_ms;         /* limit of every later blocking call and request on the communicator; 0: setting `timeout` */
} tutti_comm_options_t;
TUTTI_API tutti_status_t tutti_comm_options_init(tutti_comm_options_t* options);

/* Creates the communicator of all ranks from what the launcher put into the environment (tuttirun, mpirun of Open MPI or
 * MPICH, PMI, PMIx, srun, torchrun, or TUTTI_RANK/TUTTI_SIZE/TUTTI_RENDEZVOUS); without any, a communicator of one rank.
 * Collective, blocking (setting `bootstrap_timeout`, default 60 s: then every waiting rank gets TUTTI_ERR_MISSING_RANK with
 * the names of the missing). options may be NULL. The communicator is released with tutti_comm_destroy. */
TUTTI_API tutti_status_t tutti_comm_create(const tutti_comm_options_t* options, tutti_comm_t* comm);

/* A name for a job that the application itself passes round (over its own channel: the bytes hold the job's secret).
 * The creating process serves the rendezvous from then on until the job has met. */
#define TUTTI_UNIQUE_ID_BYTES 256
typedef struct tutti_unique_id {
  unsigned char bytes[TUTTI_UNIQUE_ID_BYTES];
} tutti_unique_id_t;
TUTTI_API tutti_status_t tutti_unique_id_create(const tutti_comm_options_t* options, tutti_unique_id_t* id);
/* Collective over `size` callers with the same id, each with its own rank (threads of one process may be ranks). */
TUTTI_API tutti_status_t tutti_comm_create_from_id(const tutti_unique_id_t* id, int size, int rank,
                                                   const tutti_comm_options_t* options, tutti_comm_t* comm);

/* A key-value store of the caller's that all ranks reach (etcd, torch's TCPStore, a file system ...).
 * set: keeps value under key. get: copies at most capacity bytes to value and stores the length; 0 when the key is there,
 * 1 when it is not yet, negative on error. wait: returns 0 when key is there, 1 when timeout_ms passed. Called from the
 * creating thread only, and only during creation. Keys start with `prefix`, values are below 4 KiB. */
typedef struct tutti_store {
  size_t struct_size;
  void* user;
  const char* prefix; /* distinguishes jobs that share the store; NULL: "" */
  int (*set)(void* user, const char* key, const void* value, size_t bytes);
  int (*get)(void* user, const char* key, void* value, size_t capacity, size_t* bytes);
  int (*wait)(void* user, const char* key, int64_t timeout_ms);
} tutti_store_t;
TUTTI_API tutti_status_t tutti_store_init(tutti_store_t* store);
TUTTI_API tutti_status_t tutti_comm_create_from_store(const tutti_store_t* store, int size, int rank,
                                                      const tutti_comm_options_t* options, tutti_comm_t* comm);

/* Divides a communicator: ranks with the same colour (>= 0) form a new one, ordered by (key, old rank). TUTTI_COLOR_NONE
 * gives *new_comm = NULL. Collective over comm, blocking. Links are shared with the parent; either may be destroyed first. */
#define TUTTI_COLOR_NONE (-1)
TUTTI_API tutti_status_t tutti_comm_split(tutti_comm_t comm, int color, int key, tutti_comm_t* new_comm);

/* From now on calls of `collective` ("allreduce", "broadcast" ...: the settings of these names) on this communicator use this
 * algorithm, as "ring:segment_bytes=256K"; "": Tutti chooses, as the settings say for "". Persistent requests that were started
 * before keep theirs. Collective over comm, blocking; rank 0's text counts. TUTTI_ERR_CONFIG on all ranks, and nothing is
 * changed, where it cannot be used here. */
TUTTI_API tutti_status_t tutti_comm_set_algorithm(tutti_comm_t comm, const char* collective, const char* algorithm);
/* Which one calls of `collective` use, in the same form, as text with a zero at the end; TUTTI_ERR_TRUNCATED where it has no place
 * (256 bytes are enough). bytes: of the whole vector, all blocks together, which are of equal lengths; op: only where the
 * collective has one. Local. */
TUTTI_API tutti_status_t tutti_comm_get_algorithm(tutti_comm_t comm, const char* collective, uint64_t bytes, tutti_dtype_t dtype,
                                                  tutti_op_t op, char* algorithm, size_t capacity_bytes);

/* Releases a communicator. Local: does not wait for peers. Outstanding requests complete with TUTTI_ERR_ABORTED. */
TUTTI_API tutti_status_t tutti_comm_destroy(tutti_comm_t comm);

/* Ends every outstanding and later call on the communicator, on all ranks, with TUTTI_ERR_ABORTED. Any thread; returns at
 * once. The communicator still has to be destroyed. */
TUTTI_API tutti_status_t tutti_comm_abort(tutti_comm_t comm);

TUTTI_API tutti_status_t tutti_comm_rank(tutti_comm_t comm, int* rank);
TUTTI_API tutti_status_t tutti_comm_size(tutti_comm_t comm, int* size);
/* Rank among, and number of, the communicator's ranks on this node. */
TUTTI_API tutti_status_t tutti_comm_local_rank(tutti_comm_t comm, int* local_rank);
TUTTI_API tutti_status_t tutti_comm_local_size(tutti_comm_t comm, int* local_size);

/* ---- collectives ------------------------------------------------------------------------------------------------- */

/* Each comes in three forms: blocking; non-blocking (tutti_i...), completed by its request; and persistent (tutti_..._init), a
 * request that tutti_start starts again and again. A rank may make a call in one form and another rank the same in another.
 * Non-blocking calls run in the order in which they were made, may be waited for in any, and progress while the caller computes
 * (setting `control_thread`).
 *
 * Blocks. Where each rank has a block, block r is rank r's, and count is of one block. Arrays of counts and displacements, in
 * elements, have an entry for each rank; displacements say where in the buffer each block begins; NULL: one after another.
 * Blocks of one receive buffer must not overlap. Arrays must not change until the call has completed.
 *
 * In place, with TUTTI_IN_PLACE as send: allreduce, reduce at the root, scan, exscan: recv holds the contribution. allgather,
 * gather at the root: the own block is in its place in recv. reduce_scatter: recv holds all blocks, and the result comes into
 * the own block's place; the others are unspecified then. alltoall: recv holds what is sent, in blocks as they are received.
 * scatter at the root: TUTTI_IN_PLACE as recv, the own block stays in send. */

/* recv[i] = op over all ranks of send[i]. All ranks get the same bits. */
TUTTI_API tutti_status_t tutti_allreduce(tutti_comm_t comm, const void* send, void* recv, uint64_t count,
                                         tutti_dtype_t dtype, tutti_op_t op);
/* The same at the root alone; elsewhere recv is not used. */
TUTTI_API tutti_status_t tutti_reduce(tutti_comm_t comm, const void* send, void* recv, uint64_t count,
                                      tutti_dtype_t dtype, tutti_op_t op, int root);
/* buffer of rank root is copied to buffer of every other rank. */
TUTTI_API tutti_status_t tutti_broadcast(tutti_comm_t comm, void* buffer, uint64_t count, tutti_dtype_t dtype,
                                         int root);
/* Every rank gets the blocks of all. */
TUTTI_API tutti_status_t tutti_allgather(tutti_comm_t comm, const void* send, void* recv, uint64_t count,
                                         tutti_dtype_t dtype);
/* Blocks of different lengths; counts are the same on all ranks. */
TUTTI_API tutti_status_t tutti_allgatherv(tutti_comm_t comm, const void* send, void* recv, const uint64_t* counts,
                                          const uint64_t* displacements, tutti_dtype_t dtype);
/* The root gets the blocks of all; elsewhere recv is not used. */
TUTTI_API tutti_status_t tutti_gather(tutti_comm_t comm, const void* send, void* recv, uint64_t count,
                                      tutti_dtype_t dtype, int root);
/* counts and displacements are the root's; send_count of rank r equals counts[r]. */
TUTTI_API tutti_status_t tutti_gatherv(tutti_comm_t comm, const void* send, uint64_t send_count, void* recv,
                                       const uint64_t* counts, const uint64_t* displacements, tutti_dtype_t dtype,
                                       int root);
/* Block r of the root goes to rank r; elsewhere send is not used. */
TUTTI_API tutti_status_t tutti_scatter(tutti_comm_t comm, const void* send, void* recv, uint64_t count,
                                       tutti_dtype_t dtype, int root);
/* counts and displacements are the root's; recv_count of rank r equals counts[r]. */
TUTTI_API tutti_status_t tutti_scatterv(tutti_comm_t comm, const void* send, const uint64_t* counts,
                                        const uint64_t* displacements, void* recv, uint64_t recv_count,
                                        tutti_dtype_t dtype, int root);
/* Rank r gets block r of the reduction of all blocks. */
TUTTI_API tutti_status_t tutti_reduce_scatter(tutti_comm_t comm, const void* send, void* recv, uint64_t count,
                                              tutti_dtype_t dtype, tutti_op_t op);
/* Blocks of different lengths; counts are the same on all ranks. */
TUTTI_API tutti_status_t tutti_reduce_scatterv(tutti_comm_t comm, const void* send, void* recv, const uint64_t* counts,
                                               tutti_dtype_t dtype, tutti_op_t op);
/* Block r of send goes to rank r; block r of recv comes from it. */
TUTTI_API tutti_status_t tutti_alltoall(tutti_comm_t comm, const void* send, void* recv, uint64_t count,
                                        tutti_dtype_t dtype);
/* send_counts[r] of a rank equals recv_counts of rank r for it. */
TUTTI_API tutti_status_t tutti_alltoallv(tutti_comm_t comm, const void* send, const uint64_t* send_counts,
                                         const uint64_t* send_displacements, void* recv, const uint64_t* recv_counts,
                                         const uint64_t* recv_displacements, tutti_dtype_t dtype);
/* Every block with a type of its own, and displacements in bytes; these arrays may change when the call has returned. */
TUTTI_API tutti_status_t tutti_alltoallw(tutti_comm_t comm, const void* send, const uint64_t* send_counts,
                                         const uint64_t* send_displacements_bytes, const tutti_dtype_t* send_types,
                                         void* recv, const uint64_t* recv_counts,
                                         const uint64_t* recv_displacements_bytes, const tutti_dtype_t* recv_types);
/* recv[i] = op over ranks 0 to this one of send[i]. Not for TUTTI_AVG. */
TUTTI_API tutti_status_t tutti_scan(tutti_comm_t comm, const void* send, void* recv, uint64_t count,
                                    tutti_dtype_t dtype, tutti_op_t op);
/* The same without this rank's own; rank 0's recv is left alone. */
TUTTI_API tutti_status_t tutti_exscan(tutti_comm_t comm, const void* send, void* recv, uint64_t count,
                                      tutti_dtype_t dtype, tutti_op_t op);
/* Returns when all ranks have entered. */
TUTTI_API tutti_status_t tutti_barrier(tutti_comm_t comm);
/* right_and_result[i] = left[i] op right_and_result[i], here. */
TUTTI_API tutti_status_t tutti_reduce_local(const void* left, void* right_and_result, uint64_t count,
                                            tutti_dtype_t dtype, tutti_op_t op);

/* ---- collectives: non-blocking ----------------------------------------------------------------------------------- */

/* *request is to be completed by tutti_wait, tutti_wait_all or a tutti_test that says done, each of which releases it and
 * sets it to NULL. */
TUTTI_API tutti_status_t tutti_iallreduce(tutti_comm_t comm, const void* send, void* recv, uint64_t count,
                                          tutti_dtype_t dtype, tutti_op_t op, tutti_request_t* request);
TUTTI_API tutti_status_t tutti_ireduce(tutti_comm_t comm, const void* send, void* recv, uint64_t count,
                                       tutti_dtype_t dtype, tutti_op_t op, int root, tutti_request_t* request);
TUTTI_API tutti_status_t tutti_ibroadcast(tutti_comm_t comm, void* buffer, uint64_t count, tutti_dtype_t dtype,
                                          int root, tutti_request_t* request);
TUTTI_API tutti_status_t tutti_iallgather(tutti_comm_t comm, const void* send, void* recv, uint64_t count,
                                          tutti_dtype_t dtype, tutti_request_t* request);
TUTTI_API tutti_status_t tutti_iallgatherv(tutti_comm_t comm, const void* send, void* recv, const uint64_t* counts,
                                           const uint64_t* displacements, tutti_dtype_t dtype,
                                           tutti_request_t* request);
TUTTI_API tutti_status_t tutti_igather(tutti_comm_t comm, const void* send, void* recv, uint64_t count,
                                       tutti_dtype_t dtype, int root, tutti_request_t* request);
TUTTI_API tutti_status_t tutti_igatherv(tutti_comm_t comm, const void* send, uint64_t send_count, void* recv,
                                        const uint64_t* counts, const uint64_t* displacements, tutti_dtype_t dtype,
                                        int root, tutti_request_t* request);
TUTTI_API tutti_status_t tutti_iscatter(tutti_comm_t comm, const void* send, void* recv, uint64_t count,
                                        tutti_dtype_t dtype, int root, tutti_request_t* request);
TUTTI_API tutti_status_t tutti_iscatterv(tutti_comm_t comm, const void* send, const uint64_t* counts,
                                         const uint64_t* displacements, void* recv, uint64_t recv_count,
                                         tutti_dtype_t dtype, int root, tutti_request_t* request);
TUTTI_API tutti_status_t tutti_ireduce_scatter(tutti_comm_t comm, const void* send, void* recv, uint64_t count,
                                               tutti_dtype_t dtype, tutti_op_t op, tutti_request_t* request);
TUTTI_API tutti_status_t tutti_ireduce_scatterv(tutti_comm_t comm, const void* send, void* recv, const uint64_t* counts,
                                                tutti_dtype_t dtype, tutti_op_t op, tutti_request_t* request);
TUTTI_API tutti_status_t tutti_ialltoall(tutti_comm_t comm, const void* send, void* recv, uint64_t count,
                                         tutti_dtype_t dtype, tutti_request_t* request);
TUTTI_API tutti_status_t tutti_ialltoallv(tutti_comm_t comm, const void* send, const uint64_t* send_counts,
                                          const uint64_t* send_displacements, void* recv, const uint64_t* recv_counts,
                                          const uint64_t* recv_displacements, tutti_dtype_t dtype,
                                          tutti_request_t* request);
TUTTI_API tutti_status_t tutti_ialltoallw(tutti_comm_t comm, const void* send, const uint64_t* send_counts,
                                          const uint64_t* send_displacements_bytes, const tutti_dtype_t* send_types,
                                          void* recv, const uint64_t* recv_counts,
                                          const uint64_t* recv_displacements_bytes, const tutti_dtype_t* recv_types,
                                          tutti_request_t* request);
TUTTI_API tutti_status_t tutti_iscan(tutti_comm_t comm, const void* send, void* recv, uint64_t count,
                                     tutti_dtype_t dtype, tutti_op_t op, tutti_request_t* request);
TUTTI_API tutti_status_t tutti_iexscan(tutti_comm_t comm, const void* send, void* recv, uint64_t count,
                                       tutti_dtype_t dtype, tutti_op_t op, tutti_request_t* request);
TUTTI_API tutti_status_t tutti_ibarrier(tutti_comm_t comm, tutti_request_t* request);

/* ---- collectives: persistent ------------------------------------------------------------------------------------- */

/* Nothing is sent yet. tutti_start starts the request, with the data that the buffers then hold; waiting for it, or a test that
 * says done, leaves it to be started again. tutti_request_free releases it. What does not change from run to run is found once.
 * A start is the call of which convention 6 speaks. */
TUTTI_API tutti_status_t tutti_allreduce_init(tutti_comm_t comm, const void* send, void* recv, uint64_t count,
                                              tutti_dtype_t dtype, tutti_op_t op, tutti_request_t* request);
TUTTI_API tutti_status_t tutti_reduce_init(tutti_comm_t comm, const void* send, void* recv, uint64_t count,
                                           tutti_dtype_t dtype, tutti_op_t op, int root, tutti_request_t* request);
TUTTI_API tutti_status_t tutti_broadcast_init(tutti_comm_t comm, void* buffer, uint64_t count, tutti_dtype_t dtype,
                                              int root, tutti_request_t* request);
TUTTI_API tutti_status_t tutti_allgather_init(tutti_comm_t comm, const void* send, void* recv, uint64_t count,
                                              tutti_dtype_t dtype, tutti_request_t* request);
TUTTI_API tutti_status_t tutti_allgatherv_init(tutti_comm_t comm, const void* send, void* recv, const uint64_t* counts,
                                               const uint64_t* displacements, tutti_dtype_t dtype,
                                               tutti_request_t* request);
TUTTI_API tutti_status_t tutti_gather_init(tutti_comm_t comm, const void* send, void* recv, uint64_t count,
                                           tutti_dtype_t dtype, int root, tutti_request_t* request);
TUTTI_API tutti_status_t tutti_gatherv_init(tutti_comm_t comm, const void* send, uint64_t send_count, void* recv,
                                            const uint64_t* counts, const uint64_t* displacements, tutti_dtype_t dtype,
                                            int root, tutti_request_t* request);
TUTTI_API tutti_status_t tutti_scatter_init(tutti_comm_t comm, const void* send, void* recv, uint64_t count,
                                            tutti_dtype_t dtype, int root, tutti_request_t* request);
TUTTI_API tutti_status_t tutti_scatterv_init(tutti_comm_t comm, const void* send, const uint64_t* counts,
                                             const uint64_t* displacements, void* recv, uint64_t recv_count,
                                             tutti_dtype_t dtype, int root, tutti_request_t* request);
TUTTI_API tutti_status_t tutti_reduce_scatter_init(tutti_comm_t comm, const void* send, void* recv, uint64_t count,
                                                   tutti_dtype_t dtype, tutti_op_t op, tutti_request_t* request);
TUTTI_API tutti_status_t tutti_reduce_scatterv_init(tutti_comm_t comm, const void* send, void* recv,
                                                    const uint64_t* counts, tutti_dtype_t dtype, tutti_op_t op,
                                                    tutti_request_t* request);
TUTTI_API tutti_status_t tutti_alltoall_init(tutti_comm_t comm, const void* send, void* recv, uint64_t count,
                                             tutti_dtype_t dtype, tutti_request_t* request);
TUTTI_API tutti_status_t tutti_alltoallv_init(tutti_comm_t comm, const void* send, const uint64_t* send_counts,
                                              const uint64_t* send_displacements, void* recv,
                                              const uint64_t* recv_counts, const uint64_t* recv_displacements,
                                              tutti_dtype_t dtype, tutti_request_t* request);
TUTTI_API tutti_status_t tutti_alltoallw_init(tutti_comm_t comm, const void* send, const uint64_t* send_counts,
                                              const uint64_t* send_displacements_bytes, const tutti_dtype_t* send_types,
                                              void* recv, const uint64_t* recv_counts,
                                              const uint64_t* recv_displacements_bytes, const tutti_dtype_t* recv_types,
                                              tutti_request_t* request);
TUTTI_API tutti_status_t tutti_scan_init(tutti_comm_t comm, const void* send, void* recv, uint64_t count,
                                         tutti_dtype_t dtype, tutti_op_t op, tutti_request_t* request);
TUTTI_API tutti_status_t tutti_exscan_init(tutti_comm_t comm, const void* send, void* recv, uint64_t count,
                                           tutti_dtype_t dtype, tutti_op_t op, tutti_request_t* request);
TUTTI_API tutti_status_t tutti_barrier_init(tutti_comm_t comm, tutti_request_t* request);
TUTTI_API tutti_status_t tutti_start(tutti_request_t request);
/* In the order of the array; stops at the first that cannot be started, and says which. */
TUTTI_API tutti_status_t tutti_start_all(size_t request_count, const tutti_request_t* requests);

/* ---- requests ---------------------------------------------------------------------------------------------------- */

/* Sets *done to 1 and releases the request when it has completed, else to 0. Never blocks. The status is the operation's. A
 * persistent request that is not running is done. */
TUTTI_API tutti_status_t tutti_test(tutti_request_t* request, int* done);
TUTTI_API tutti_status_t tutti_wait(tutti_request_t* request);
/* Waits for all, releases all, returns the first error in array order. statuses (may be NULL) gets one code each. NULL
 * requests are skipped. */
TUTTI_API tutti_status_t tutti_wait_all(size_t request_count, tutti_request_t* requests, tutti_status_t* statuses);
/* Gives up interest: the operation goes on, its buffers stay in use until it has finished. Sets *request to NULL. */
TUTTI_API tutti_status_t tutti_request_free(tutti_request_t* request);

/* ---- collectives: groups ------------------------------------------------------------------------------------------ */

/* Several collectives of one communicator that start together. Small ones of one kind (the same collective, type, operation and
 * root; all blocks together up to 64 KiB; no count for each rank, no operation of the caller's) are made as one, over the data
 * of all: many cost little more than one. The others follow one another.
 *
 *   tutti_group_begin(comm, &group);
 *   for (i = 0; i < n; ++i) {
 *     tutti_allreduce_init(comm, grad[i], grad[i], count[i], TUTTI_FLOAT32, TUTTI_SUM, &call);
 *     tutti_group_add(group, call);
 *     tutti_request_free(&call);
 *   }
 *   tutti_group_launch(group, &request);   // again and again, with the data that the buffers then hold
 *   tutti_wait(&request);
 *   tutti_group_free(&group);
 *
 * All ranks add the same calls in the same order. Buffers of different calls of a group do not overlap, unless both only read
 * them. A group may be used by one thread at a time. */
typedef struct tutti_group_s* tutti_group_t;
TUTTI_API tutti_status_t tutti_group_begin(tutti_comm_t comm, tutti_group_t* group);
/* call: a persistent collective request of the same communicator. The group makes the same call; the request stays the caller's,
 * to be freed or to be used by itself. Arrays of counts and displacements stay until the group has run for the last time. Not
 * while the group runs. */
TUTTI_API tutti_status_t tutti_group_add(tutti_group_t group, tutti_request_t call);
/* Starts all of it, and gives a request for the whole: it has completed when all calls have. The launch is the call of which
 * convention 6 speaks. The group may be launched again when that request has been waited for, or has been freed and has completed.
 * A group without calls completes at once. */
TUTTI_API tutti_status_t tutti_group_launch(tutti_group_t group, tutti_request_t* request);
/* A run goes on to its end. Sets *group to NULL. */
TUTTI_API tutti_status_t tutti_group_free(tutti_group_t* group);

/* ---- messages -------------------------------------------------------------------------------------------------- */

/* From one rank to another of a communicator, with a tag (>= 0). Messages of one sender never overtake each other: of the
 * messages that a receive takes it gets the one that came first, and of the receives that take a message the one that was
 * posted first gets it, whether they name a source or not. Collectives are not seen by receives, nor messages by collectives.
 *
 * A receive buffer may be longer than the message. A longer message fills it, and the receive returns TUTTI_ERR_TRUNCATED;
 * later messages come as if nothing had happened.
 *
 * A message that no receive takes stays with its sender, but for a bounded part, and blocks nobody who receives others: these
 * are set aside in memory, up to 64 MiB a communicator. Beyond, the sender of what nobody takes is held back. A rank may send
 * to itself. A receive from any source fails when any rank of the communicator has failed; when a rank has merely left or
 * destroyed its communicator it goes on, until all others have. */
#define TUTTI_ANY_SOURCE (-1)
#define TUTTI_ANY_TAG (-1)

/* What is known of a message. An output: fill it with its _init function, pass it, or NULL, where a message is received or
 * looked for. Written on TUTTI_OK and on TUTTI_ERR_TRUNCATED. */
typedef struct tutti_message {
  size_t struct_size;
  int source;          /* rank of its sender */
  int tag;
  uint64_t size_bytes; /* as it was sent, even if the receive buffer is shorter */
} tutti_message_t;
TUTTI_API tutti_status_t tutti_message_init(tutti_message_t* message);

/* tutti_send may return before the message was received: then buffer may be used again. */
TUTTI_API tutti_status_t tutti_send(tutti_comm_t comm, const void* buffer, uint64_t count, tutti_dtype_t dtype, int dest,
                                    int tag);
/* source may be TUTTI_ANY_SOURCE, tag TUTTI_ANY_TAG. */
TUTTI_API tutti_status_t tutti_recv(tutti_comm_t comm, void* buffer, uint64_t count, tutti_dtype_t dtype, int source,
                                    int tag, tutti_message_t* message);
/* Both at once, so that ranks which send to each other, or round in a ring, do not wait for each other. In place, the data to
 * send lies at recv and is replaced. */
TUTTI_API tutti_status_t tutti_sendrecv(tutti_comm_t comm, const void* send, uint64_t send_count, tutti_dtype_t send_dtype,
                                        int dest, int send_tag, void* recv, uint64_t recv_count, tutti_dtype_t recv_dtype,
                                        int source, int recv_tag, tutti_message_t* message);

/* Non-blocking; see "collectives: non-blocking" for the request. */
TUTTI_API tutti_status_t tutti_isend(tutti_comm_t comm, const void* buffer, uint64_t count, tutti_dtype_t dtype, int dest,
                                     int tag, tutti_request_t* request);
TUTTI_API tutti_status_t tutti_irecv(tutti_comm_t comm, void* buffer, uint64_t count, tutti_dtype_t dtype, int source,
                                     int tag, tutti_request_t* request);
/* See "collectives: persistent". Every start is one message, as that of tutti_isend or tutti_irecv, which the other end may be. */
TUTTI_API tutti_status_t tutti_send_init(tutti_comm_t comm, const void* buffer, uint64_t count, tutti_dtype_t dtype, int dest,
                                         int tag, tutti_request_t* request);
TUTTI_API tutti_status_t tutti_recv_init(tutti_comm_t comm, void* buffer, uint64_t count, tutti_dtype_t dtype, int source,
                                         int tag, tutti_request_t* request);
/* What a receive got, in its last run: waits until it has completed, releases nothing. The status is the receive's. */
TUTTI_API tutti_status_t tutti_request_get_message(tutti_request_t request, tutti_message_t* message);

/* Ends a receive that no message has come for with TUTTI_ERR_CANCELLED, its buffer as it was. One that has its message goes on as if
 * nothing had been asked; one that has ended or does not run stays as it is. Waits for no peer. The request has still to be waited
 * for or freed. Not while another thread does that. TUTTI_ERR_ARGUMENT: a send or a collective, on which peers count. */
TUTTI_API tutti_status_t tutti_cancel(tutti_request_t request);

/* Tells of the message that a receive with this source and tag would get now. It stays where it is, and another receive, of
 * another thread say, may get it first. tutti_probe waits until there is one; tutti_iprobe looks once at what has come and sets
 * *found to 1 or 0. */
TUTTI_API tutti_status_t tutti_probe(tutti_comm_t comm, int source, int tag, tutti_message_t* message);
TUTTI_API tutti_status_t tutti_iprobe(tutti_comm_t comm, int source, int tag, int* found, tutti_message_t* message);

/* Likewise, and the message is then for tutti_mrecv or tutti_imrecv with this handle alone, each of which releases it and sets
 * it to NULL. One that is never received is released with its communicator. */
typedef struct tutti_matched_s* tutti_matched_t;
TUTTI_API tutti_status_t tutti_mprobe(tutti_comm_t comm, int source, int tag, tutti_matched_t* matched,
                                      tutti_message_t* message);
TUTTI_API tutti_status_t tutti_improbe(tutti_comm_t comm, int source, int tag, int* found, tutti_matched_t* matched,
                                       tutti_message_t* message);
TUTTI_API tutti_status_t tutti_mrecv(tutti_matched_t* matched, void* buffer, uint64_t count, tutti_dtype_t dtype,
                                     tutti_message_t* message);
TUTTI_API tutti_status_t tutti_imrecv(tutti_matched_t* matched, void* buffer, uint64_t count, tutti_dtype_t dtype,
                                      tutti_request_t* request);

/* ---- for embedders --------------------------------------------------------------------------------------------- */

/* The context that a communicator and all those split from it share. It lives as long as any of them. */
TUTTI_API tutti_status_t tutti_comm_get_context(tutti_comm_t comm, tutti_context_t* context);
/* A descriptor that becomes readable when tutti_context_progress has work; for the caller's own poll loop together with the
 * setting `control_thread` = off. Owned by Tutti. */
TUTTI_API tutti_status_t tutti_context_get_fd(tutti_context_t context, int* fd);
/* Drives all outstanding operations as far as they go without blocking, then re-arms the descriptor. */
TUTTI_API tutti_status_t tutti_context_progress(tutti_context_t context);
/* Counter number `index` (0, 1, ...): its name and present value; TUTTI_ERR_ARGUMENT past the last one. The name is valid as
 * long as the context. `tutti-info counters` explains each. */
TUTTI_API tutti_status_t tutti_context_get_counter(tutti_context_t context, size_t index, const char** name,
                                                   uint64_t* value);

#ifdef __cplusplus
}
#endif
#endif /* TUTTI_TUTTI_H */
