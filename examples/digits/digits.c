/* SPDX-FileCopyrightText: The Tutti authors
 * SPDX-License-Identifier: Apache-2.0 */

/* Trains a classifier of handwritten digits, data-parallel:   tuttirun -np 4 digits digits.csv [epochs]
 *
 * Every rank holds all weights and computes the gradient of its share of each batch; one allreduce adds the shares up. The
 * batches are the same whatever the number of ranks is, so the result is that of a single process but for the rounding of sums.
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <tutti/tutti.h>

enum { PIXELS = 64, HIDDEN = 32, CLASSES = 10, MAX_SAMPLES = 2000, BATCH = 48, TEST_EVERY = 5, DEFAULT_EPOCHS = 60 };
enum { WEIGHTS = HIDDEN * (PIXELS + 1) + CLASSES * (HIDDEN + 1) };
static const float LEARNING_RATE = 0.2f;

typedef struct {
  float pixels[PIXELS]; /* 0 to 1 */
  int digit;
} sample_t;

/* The last weight of each row is the bias. */
typedef struct {
  float hidden[HIDDEN][PIXELS + 1];
  float out[CLASSES][HIDDEN + 1];
} network_t;

/* A message and the end of the program, when a call of Tutti fails. The launcher then ends the other ranks. */
static void require(tutti_status_t status, const char* what) {
  if (status == TUTTI_OK) return;
  fprintf(stderr, "digits: %s: %s: %s\n", what, tutti_status_string(status), tutti_last_error());
  exit(1);
}

static int parse_row(char* line, sample_t* sample) {
  char* at = line;
  for (int field = 0; field <= PIXELS; ++field) {
    char* end = NULL;
    const long value = strtol(at, &end, 10);
    const int last = field == PIXELS;
    if (end == at || value < 0 || value > (last ? CLASSES - 1 : 16)) return 0;
    if (!last && *end != ',') return 0;
    if (last) {
      sample->digit = (int)value;
    } else {
      sample->pixels[field] = (float)value / 16.0f;
    }
    at = end + 1;
  }
  return 1;
}

static int read_samples(const char* path, sample_t* samples) {
  FILE* file = fopen(path, "r");
  if (file == NULL) {
    perror(path);
    exit(1);
  }
  char line[1024];
  int count = 0;
  while (count < MAX_SAMPLES && fgets(line, sizeof line, file) != NULL) {
    if (!parse_row(line, &samples[count])) {
      fprintf(stderr, "digits: %s, line %d: not 64 pixels (0 to 16) and a digit\n", path, count + 1);
      exit(1);
    }
    ++count;
  }
  fclose(file);
  return count;
}

static uint32_t next_random(uint64_t* state) {
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(*state >> 33);
}

/* Small numbers round zero. Only rank 0 draws them; the others get them by a broadcast. */
static void initialise(float* weights) {
  uint64_t state = 1;
  for (int i = 0; i < WEIGHTS; ++i) weights[i] = ((float)next_random(&state) / 2147483648.0f - 0.5f) * 0.3f;
}

/* The samples of an epoch in a new order, the same on every rank: train[] is shuffled with the epoch's number as seed. */
static void shuffle(int* train, int count, int epoch) {
  uint64_t state = (uint64_t)epoch + 12345;
  for (int i = count - 1; i > 0; --i) {
    const int j = (int)(next_random(&state) % (uint32_t)(i + 1));
    const int kept = train[i];
    train[i] = train[j];
    train[j] = kept;
  }
}

/* Outputs of the hidden layer, and the probability of each digit. */
static void forward(const network_t* network, const sample_t* sample, float* hidden, float* probability) {
  for (int h = 0; h < HIDDEN; ++h) {
    float sum = network->hidden[h][PIXELS];
    for (int i = 0; i < PIXELS; ++i) sum += network->hidden[h][i] * sample->pixels[i];
    hidden[h] = tanhf(sum);
  }
  float largest = -INFINITY;
  for (int c = 0; c < CLASSES; ++c) {
    float sum = network->out[c][HIDDEN];
    for (int h = 0; h < HIDDEN; ++h) sum += network->out[c][h] * hidden[h];
    probability[c] = sum;
    if (sum > largest) largest = sum;
  }
  float total = 0;
  for (int c = 0; c < CLASSES; ++c) total += probability[c] = expf(probability[c] - largest);
  for (int c = 0; c < CLASSES; ++c) probability[c] /= total;
}

/* Adds the gradient of the cross entropy for one sample. */
static void add_gradient(const network_t* network, const sample_t* sample, network_t* gradient) {
  float hidden[HIDDEN];
  float error[CLASSES];
  forward(network, sample, hidden, error);
  error[sample->digit] -= 1.0f;
  for (int c = 0; c < CLASSES; ++c) {
    for (int h = 0; h < HIDDEN; ++h) gradient->out[c][h] += error[c] * hidden[h];
    gradient->out[c][HIDDEN] += error[c];
  }
  for (int h = 0; h < HIDDEN; ++h) {
    float sum = 0;
    for (int c = 0; c < CLASSES; ++c) sum += error[c] * network->out[c][h];
    const float slope = sum * (1.0f - hidden[h] * hidden[h]);
    for (int i = 0; i < PIXELS; ++i) gradient->hidden[h][i] += slope * sample->pixels[i];
    gradient->hidden[h][PIXELS] += slope;
  }
}

static int is_right(const network_t* network, const sample_t* sample) {
  float hidden[HIDDEN];
  float probability[CLASSES];
  forward(network, sample, hidden, probability);
  int best = 0;
  for (int c = 1; c < CLASSES; ++c) {
    if (probability[c] > probability[best]) best = c;
  }
  return best == sample->digit;
}

/* FNV-1a over the bytes of the weights. */
static uint64_t hash_of(const network_t* network) {
  const unsigned char* bytes = (const unsigned char*)network;
  uint64_t hash = 14695981039346656037u;
  for (size_t i = 0; i < sizeof *network; ++i) hash = (hash ^ bytes[i]) * 1099511628211u;
  return hash;
}

static sample_t samples[MAX_SAMPLES];
static network_t network;
static network_t gradient;

/* One step on samples[train[0 .. count)]: this rank's share is every size-th of them. */
static void step(tutti_comm_t comm, int rank, int size, const int* train, int count) {
  float* const sum = &gradient.hidden[0][0];
  float* const weights = &network.hidden[0][0];
  for (int i = 0; i < WEIGHTS; ++i) sum[i] = 0;
  for (int i = rank; i < count; i += size) add_gradient(&network, &samples[train[i]], &gradient);
  require(tutti_allreduce(comm, TUTTI_IN_PLACE, sum, WEIGHTS, TUTTI_FLOAT32, TUTTI_SUM), "allreduce of the gradient");
  for (int i = 0; i < WEIGHTS; ++i) weights[i] -= LEARNING_RATE / (float)count * sum[i];
}

/* Per cent of the test samples that are recognised; each rank looks at its share. */
static double accuracy(tutti_comm_t comm, int rank, int size, const int* test, int count) {
  uint32_t right = 0;
  for (int i = rank; i < count; i += size) right += (uint32_t)is_right(&network, &samples[test[i]]);
  require(tutti_allreduce(comm, TUTTI_IN_PLACE, &right, 1, TUTTI_UINT32, TUTTI_SUM), "allreduce of the hits");
  return 100.0 * right / count;
}

/* 1 if all ranks have the same weights. */
static int weights_agree(tutti_comm_t comm, uint64_t hash) {
  uint64_t smallest = hash;
  uint64_t largest = hash;
  require(tutti_allreduce(comm, TUTTI_IN_PLACE, &smallest, 1, TUTTI_UINT64, TUTTI_MIN), "allreduce of the hashes");
  require(tutti_allreduce(comm, TUTTI_IN_PLACE, &largest, 1, TUTTI_UINT64, TUTTI_MAX), "allreduce of the hashes");
  return smallest == largest;
}

static int train_and_test(tutti_comm_t comm, int rank, int size, int sample_count, int epochs) {
  int train[MAX_SAMPLES];
  int test[MAX_SAMPLES];
  int train_count = 0;
  int test_count = 0;
  for (int i = 0; i < sample_count; ++i) {
    if (i % TEST_EVERY == 0) {
      test[test_count++] = i;
    } else {
      train[train_count++] = i;
    }
  }
  if (rank == 0) initialise(&network.hidden[0][0]);
  require(tutti_broadcast(comm, &network, WEIGHTS, TUTTI_FLOAT32, 0), "broadcast of the weights");
  for (int epoch = 0; epoch < epochs; ++epoch) {
    shuffle(train, train_count, epoch);
    for (int at = 0; at + BATCH <= train_count; at += BATCH) step(comm, rank, size, train + at, BATCH);
  }
  const double percent = accuracy(comm, rank, size, test, test_count);
  const uint64_t hash = hash_of(&network);
  printf("rank %d of %d: weights %016llx\n", rank, size, (unsigned long long)hash);
  if (!weights_agree(comm, hash)) {
    fprintf(stderr, "digits: rank %d: the weights differ between ranks\n", rank);
    return 1;
  }
  if (rank == 0) {
    printf("accuracy %.2f %% of %d test samples, after %d epochs on %d samples\n", percent, test_count, epochs, train_count);
  }
  return 0;
}

int main(int argc, char** argv) {
  const long epochs = argc > 2 ? strtol(argv[2], NULL, 10) : DEFAULT_EPOCHS;
  if (argc < 2 || argc > 3 || epochs < 1 || epochs > 100000) {
    fprintf(stderr, "usage: digits digits.csv [epochs]\n");
    return 2;
  }
  const int sample_count = read_samples(argv[1], samples);
  if (sample_count < 2 * BATCH) {
    fprintf(stderr, "digits: %s has %d samples, too few\n", argv[1], sample_count);
    return 1;
  }
  tutti_comm_t comm = NULL;
  int rank = 0;
  int size = 0;
  require(tutti_comm_create(NULL, &comm), "create");
  require(tutti_comm_rank(comm, &rank), "rank");
  require(tutti_comm_size(comm, &size), "size");
  const int code = train_and_test(comm, rank, size, sample_count, (int)epochs);
  require(tutti_comm_destroy(comm), "destroy");
  return code;
}
