// A double of NVIDIA's driver and of NVRTC, for tests without a GPU: memory is the host's, kernels are compiled by the host's C++ compiler
// and run when they are launched, with the threads of a block one after the other. The first stream runs at once. Others run when somebody
// waits for them and no earlier, so what does not wait for a copy finds that it has not happened; and they refuse a copy that has not
// waited for all that the first stream was given. What a call of it fails with is asked for by variables of the environment:
//
//   DOUBLE_VERSION   the driver's version: 13000
//   DOUBLE_DEVICES   how many GPUs it lists: 1
//   DOUBLE_MEMORY    their memory in bytes: 256 MiB
//   DOUBLE_FAIL      the number of a launch that fails, as a kernel does that reads where there is nothing
//   DOUBLE_INCLUDE   the folder of the headers that stand for CUDA's
//   DOUBLE_COMPILER  the compiler, or "none": kernels are then launched and do nothing
//   DOUBLE_LOG       a file that the counts of all calls are written to at the end
#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <fstream>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace {

enum Result { SUCCESS = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, NOT_READY = 600, ILLEGAL_ADDRESS = 700 };

const size_t PAGE = 2 << 20;

std::recursive_mutex lock;
std::map<std::string, long> counts;
std::map<size_t, size_t> blocks;
std::set<void*> pinned;
size_t taken;
long launches;
bool broken;

std::string setting(const char* name, const char* otherwise) {
  const char* found = getenv(name);
  return found ? found : otherwise;
}

long number(const char* name, long otherwise) {
  const char* found = getenv(name);
  return found ? atol(found) : otherwise;
}

size_t memory() { return (size_t)number("DOUBLE_MEMORY", 256 << 20); }

struct Writer {
  ~Writer() {
    const std::string to = setting("DOUBLE_LOG", "");
    if (to.empty()) return;
    std::ofstream file(to);
    file << "pinned " << pinned.size() << "\n";
    for (auto& count : counts) file << count.first << " " << count.second << "\n";
  }
} writer;

// Counts a call, and says whether the device still works.
Result called(const char* name) {
  counts[name]++;
  return broken ? ILLEGAL_ADDRESS : SUCCESS;
}

#define CALLED                                          \
  std::lock_guard<std::recursive_mutex> held(lock);     \
  if (Result failed = called(__func__)) return failed;

struct Function {
  void (*run)(void (*)(const void*, void*, unsigned), const void*, void*, unsigned, unsigned, unsigned) = nullptr;
  void (*kernel)(const void*, void*, unsigned) = nullptr;
  size_t words = 0;
};

struct Program {
  std::string text, binary;
};

using Work = std::function<void()>;

// What a stream was given while it recorded.
struct Graph {
  std::vector<Work> works;
};

// What is launched on the first stream is counted; what is launched on another waits there.
struct Stream {
  bool late = false;
  Graph* records = nullptr;
  long launched = 0, ran = 0;
  // How much of the first stream it runs behind.
  long behind = 0;
  std::deque<Work> waiting;

  void run(long last) {
    for (; ran < last && !waiting.empty(); ran++) {
      waiting.front()();
      waiting.pop_front();
    }
  }
};

// A place in a stream.
struct Event {
  Stream* of = nullptr;
  long at = 0;
};

std::vector<Stream*> streams;

// Work of a stream, which happens now or when it is waited for.
Result enqueue(Stream* stream, Work work) {
  if (stream->records) {
    stream->records->works.push_back(work);
    return SUCCESS;
  }
  stream->launched++;
  if (!stream->late) {
    work();
    return SUCCESS;
  }
  if (stream->behind < streams[0]->launched) {
    fprintf(stderr, "a copy that is not behind what was launched before it\n");
    return INVALID_VALUE;
  }
  stream->waiting.push_back(work);
  return SUCCESS;
}

}  // namespace

extern "C" {

Result cuInit(unsigned) { CALLED return SUCCESS; }
Result cuDriverGetVersion(int* version) {
  CALLED
  *version = (int)number("DOUBLE_VERSION", 13000);
  return SUCCESS;
}
Result cuDeviceGetCount(int* count) {
  CALLED
  *count = (int)number("DOUBLE_DEVICES", 1);
  return SUCCESS;
}
Result cuDeviceGet(int* device, int ordinal) { CALLED *device = ordinal; return SUCCESS; }
Result cuDeviceGetName(char* name, int len, int) { CALLED snprintf(name, (size_t)len, "NVIDIA Double"); return SUCCESS; }
Result cuDeviceTotalMem_v2(size_t* bytes, int) { CALLED *bytes = memory(); return SUCCESS; }
Result cuDeviceGetAttribute(int* value, int which, int) {
  CALLED
  *value = which == 75 ? 9 : which == 76 ? 0 : which == 97 ? 227 << 10 : 132;
  return SUCCESS;
}
Result cuGetErrorName(Result error, const char** name) {
  *name = error == OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY" : error == ILLEGAL_ADDRESS ? "CUDA_ERROR_ILLEGAL_ADDRESS" : "CUDA_ERROR_INVALID_VALUE";
  return SUCCESS;
}
Result cuGetErrorString(Result error, const char** text) {
  *text = error == OUT_OF_MEMORY ? "out of memory" : error == ILLEGAL_ADDRESS ? "an illegal memory access was encountered" : "invalid argument";
  return SUCCESS;
}
Result cuDevicePrimaryCtxRetain(void** context, int) {
  CALLED
  // A context takes some memory of its own.
  if (memory() < 16 * PAGE) return OUT_OF_MEMORY;
  taken += 8 * PAGE;
  *context = &taken;
  return SUCCESS;
}
Result cuCtxSetCurrent(void*) { counts[__func__]++; return SUCCESS; }
Result cuCtxGetDevice(int* device) { CALLED *device = 0; return SUCCESS; }
Result cuDeviceGetPCIBusId(char* id, int len, int) { CALLED snprintf(id, (size_t)len, "0000:00:00.0"); return SUCCESS; }
Result cuStreamCreate(Stream** stream, unsigned) {
  CALLED
  *stream = new Stream();
  (*stream)->late = !streams.empty();
  streams.push_back(*stream);
  return SUCCESS;
}
Result cuEventCreate(Event** event, unsigned) { CALLED *event = new Event(); return SUCCESS; }
Result cuEventRecord(Event* event, Stream* stream) { CALLED *event = {stream, stream->launched}; return SUCCESS; }
Result cuStreamWaitEvent(Stream* stream, Event* event, unsigned) {
  CALLED
  if (!event->of) return SUCCESS;
  event->of->run(event->at);
  if (event->of == streams[0]) stream->behind = std::max(stream->behind, event->at);
  return SUCCESS;
}
Result cuEventQuery(Event* event) { CALLED return !event->of || !event->of->late || event->of->ran >= event->at ? SUCCESS : NOT_READY; }
Result cuEventSynchronize(Event* event) { CALLED if (event->of) event->of->run(event->at); return SUCCESS; }
Result cuStreamSynchronize(Stream* stream) { CALLED stream->run(stream->launched); return SUCCESS; }
Result cuEventElapsedTime_v2(float* milliseconds, void*, void*) { CALLED *milliseconds = 0.5f; return SUCCESS; }
Result cuEventDestroy_v2(Event* event) { CALLED delete event; return SUCCESS; }

// What the library of products computes on a stream.
Result double_enqueue(Stream* stream, void (*work)(void*), void* given) {
  std::lock_guard<std::recursive_mutex> held(lock);
  return enqueue(stream, [=] { work(given); });
}

Result cuStreamBeginCapture_v2(Stream* stream, int) {
  CALLED
  if (stream == streams[0] || stream->records) return INVALID_VALUE;
  stream->records = new Graph();
  return SUCCESS;
}
Result cuStreamEndCapture(Stream* stream, Graph** graph) {
  CALLED
  if (!stream->records) return INVALID_VALUE;
  *graph = stream->records;
  stream->records = nullptr;
  return SUCCESS;
}
Result cuGraphGetNodes(Graph* graph, void*, size_t* count) { CALLED *count = graph->works.size(); return SUCCESS; }
Result cuGraphInstantiateWithFlags(Graph** made, Graph* graph, unsigned long long) { CALLED *made = new Graph(*graph); return SUCCESS; }
Result cuGraphDestroy(Graph* graph) { CALLED delete graph; return SUCCESS; }
Result cuGraphExecDestroy(Graph* graph) { CALLED delete graph; return SUCCESS; }
Result cuGraphLaunch(Graph* graph, Stream* stream) {
  CALLED
  for (Work& work : graph->works) enqueue(stream, work);
  return SUCCESS;
}

Result cuMemAlloc_v2(size_t* address, size_t len) {
  CALLED
  const size_t block = (len + PAGE - 1) / PAGE * PAGE;
  if (block > memory() - taken) return OUT_OF_MEMORY;
  void* found = nullptr;
  if (posix_memalign(&found, PAGE, block)) return OUT_OF_MEMORY;
  taken += block;
  *address = (size_t)found;
  blocks[*address] = block;
  return SUCCESS;
}
Result cuMemFree_v2(size_t address) {
  CALLED
  auto found = blocks.find(address);
  if (found == blocks.end()) return INVALID_VALUE;
  for (Stream* stream : streams) stream->run(stream->launched);
  taken -= found->second;
  blocks.erase(found);
  free((void*)address);
  return SUCCESS;
}
Result cuMemGetInfo_v2(size_t* free, size_t* total) {
  CALLED
  *total = memory();
  *free = memory() - taken;
  return SUCCESS;
}
Result cuMemHostAlloc(void** address, size_t len, unsigned) {
  CALLED
  return posix_memalign(address, 4096, len) ? OUT_OF_MEMORY : SUCCESS;
}
Result cuMemHostRegister_v2(void* at, size_t, unsigned) { CALLED return pinned.insert(at).second ? SUCCESS : INVALID_VALUE; }
Result cuMemHostUnregister(void* at) { CALLED return pinned.erase(at) ? SUCCESS : INVALID_VALUE; }
Result cuMemFreeHost(void* address) { CALLED free(address); return SUCCESS; }
Result cuMemcpyHtoDAsync_v2(size_t to, const void* from, size_t len, Stream* stream) {
  CALLED
  return enqueue(stream, [=] { memcpy((void*)to, from, len); });
}
Result cuMemcpyDtoHAsync_v2(void* to, size_t from, size_t len, Stream* stream) {
  CALLED
  return enqueue(stream, [=] { memcpy(to, (void*)from, len); });
}
Result cuMemcpyDtoDAsync_v2(size_t to, size_t from, size_t len, Stream* stream) {
  CALLED
  return enqueue(stream, [=] { memmove((void*)to, (void*)from, len); });
}
Result cuMemsetD8Async(size_t at, unsigned char byte, size_t len, Stream* stream) {
  CALLED
  return enqueue(stream, [=] { memset((void*)at, byte, len); });
}

// A module is the name of a library of the host.
Result cuModuleLoadData(void** module, const void* image) {
  CALLED
  if (!strcmp((const char*)image, "nothing")) {
    *module = &taken;
    return SUCCESS;
  }
  size_t len;
  memcpy(&len, image, sizeof len);
  const std::string name = "/tmp/tonnage-double-" + std::to_string(getpid()) + "-" + std::to_string(counts[__func__]) + ".so";
  std::ofstream(name, std::ios::binary).write((const char*)image + sizeof len, (std::streamsize)len);
  *module = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  unlink(name.c_str());
  return *module ? SUCCESS : INVALID_VALUE;
}
Result cuModuleGetFunction(void** function, void* module, const char* name) {
  CALLED
  Function* made = new Function();
  if (module != &taken) {
    *(void**)&made->run = dlsym(module, "double_run");
    *(void**)&made->kernel = dlsym(module, (std::string("double_") + name).c_str());
    made->words = *(size_t*)dlsym(module, "double_words");
    if (!made->run || !made->kernel) return INVALID_VALUE;
  }
  *function = made;
  return SUCCESS;
}
Result cuLaunchKernel(Function* function, unsigned grid, unsigned, unsigned, unsigned threads, unsigned, unsigned, unsigned, Stream* stream, void** arguments, void**) {
  CALLED
  const std::string words((const char*)arguments[0], function->words);
  void* status = *(void**)arguments[1];
  const unsigned launch = *(unsigned*)arguments[2];
  return enqueue(stream, [=] {
    if (++launches == number("DOUBLE_FAIL", 0)) {
      // The launch itself succeeds: who waits is told.
      broken = true;
      return;
    }
    if (function->run) function->run(function->kernel, words.data(), status, launch, grid, threads);
  });
}

// The compiler.

int nvrtcVersion(int* major, int* minor) { *major = 99; *minor = 0; return 0; }
int nvrtcCreateProgram(Program** program, const char* text, const char*, int, const char* const*, const char* const*) {
  *program = new Program{text, ""};
  return 0;
}
int nvrtcCompileProgram(Program* program, int, const char* const*) {
  const std::string compiler = setting("DOUBLE_COMPILER", "c++"), refused = setting("DOUBLE_REFUSE", "");
  if (!refused.empty() && program->text.find(refused) != std::string::npos) return 6;
  if (compiler == "none") {
    program->binary = std::string("nothing") + '\0';
    return 0;
  }
  const std::string base = "/tmp/tonnage-double-" + std::to_string(getpid()), source = base + ".cc", made = base + ".so";
  std::ofstream file(source);
  // Behind the formulas begins what a GPU alone has, or the host in its place.
  const size_t formulas = std::min(program->text.find("#ifdef __CUDACC_RTC__"), program->text.size());
  file << "#include \"formulas/prelude.h\"\n#include \"emulated/threads.h\"\n" << program->text.substr(0, formulas)
       << "\n#include \"emulated/warp.h\"\n" << program->text.substr(formulas) << "\n#pragma GCC visibility push(default)\nextern \"C\" {\n";
  const std::string& text = program->text;
  for (size_t at = 0; (at = text.find("\nTN_KERNEL(", at)) != std::string::npos; at++) {
    const size_t first = at + 11, last = text.find(')', first);
    const std::string name = text.substr(first, last - first);
    file << "void double_" << name << "(const void* p, void* s, unsigned l) { " << name << "(*(const P*)p, (Status*)s, l); }\n";
  }
  file << "extern const size_t double_words = sizeof(P);\nvoid double_run(void (*f)(const void*, void*, unsigned), const void* p, void* s, unsigned l, unsigned blocks, unsigned threads) {"
       << " threads::run(f, p, s, l, blocks, threads); }\n}\n";
  file.close();
  const std::string command = compiler + " -std=c++17 -O0 -w -ffp-contract=off -mfma -fPIC -fvisibility=hidden -shared -I" + setting("DOUBLE_INCLUDE", ".") + " -o " + made + " " + source;
  const bool failed = system(command.c_str()) != 0;
  std::ifstream binary(made, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(binary)), std::istreambuf_iterator<char>());
  const size_t len = bytes.size();
  program->binary = std::string((const char*)&len, sizeof len) + bytes;
  unlink(source.c_str());
  unlink(made.c_str());
  return failed ? 6 : 0;
}
int nvrtcGetCUBINSize(Program* program, size_t* len) { *len = program->binary.size(); return 0; }
int nvrtcGetCUBIN(Program* program, char* to) { memcpy(to, program->binary.data(), program->binary.size()); return 0; }
int nvrtcGetProgramLogSize(Program*, size_t* len) { *len = 0; return 0; }
int nvrtcGetProgramLog(Program*, char*) { return 0; }
int nvrtcDestroyProgram(Program** program) { delete *program; return 0; }

}  // extern "C"
