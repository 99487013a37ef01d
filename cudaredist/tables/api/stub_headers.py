"""Small headers in place of those of a compiler and a C library.

libclang's wheel has no `stddef.h`, and headers of this machine would give other results elsewhere.
Types of other projects and packages, such as OpenGL and NCCL, are declared as far as headers of
CUDA use them.
"""

from cudaredist.tables.api.stub_cpp_library import CPP_HEADERS, CPP_LIBRARY_TEXT

_STDDEF = """\
#pragma once
typedef __SIZE_TYPE__ size_t;
typedef __PTRDIFF_TYPE__ ptrdiff_t;
#ifndef __cplusplus
typedef __WCHAR_TYPE__ wchar_t;
#define NULL ((void *)0)
#else
#define NULL __null
#endif
typedef struct { long long integer; long double number; } max_align_t;
#define offsetof(type, member) __builtin_offsetof(type, member)
"""
_INTEGERS = "".join(
    f"typedef __{sign}INT{bits}_TYPE__ {sign.lower()}int{bits}_t;\n"
    f"typedef __{sign}INT_LEAST{bits}_TYPE__ {sign.lower()}int_least{bits}_t;\n"
    f"typedef __{sign}INT_FAST{bits}_TYPE__ {sign.lower()}int_fast{bits}_t;\n"
    f"#define {sign}INT{bits}_MAX __{sign}INT{bits}_MAX__\n"
    for sign in ("", "U")
    for bits in (8, 16, 32, 64)
)
_STDINT = f"""\
#pragma once
{_INTEGERS}
typedef __INTPTR_TYPE__ intptr_t;
typedef __UINTPTR_TYPE__ uintptr_t;
typedef __INTMAX_TYPE__ intmax_t;
typedef __UINTMAX_TYPE__ uintmax_t;
#define INT32_MIN (-INT32_MAX - 1)
#define INT64_MIN (-INT64_MAX - 1)
#define SIZE_MAX __SIZE_MAX__
#define UINTPTR_MAX __UINTPTR_MAX__
#define INT64_C(value) value##L
#define UINT64_C(value) value##UL
#define INT32_C(value) value
#define UINT32_C(value) value##U
"""
_LIMITS = """\
#pragma once
#define CHAR_BIT 8
#define SCHAR_MAX 127
#define UCHAR_MAX 255
#define CHAR_MAX 127
#define SHRT_MAX 32767
#define USHRT_MAX 65535
#define INT_MAX __INT_MAX__
#define INT_MIN (-INT_MAX - 1)
#define UINT_MAX (INT_MAX * 2U + 1U)
#define LONG_MAX __LONG_MAX__
#define LONG_MIN (-LONG_MAX - 1L)
#define ULONG_MAX (LONG_MAX * 2UL + 1UL)
#define LLONG_MAX __LONG_LONG_MAX__
#define ULLONG_MAX (LLONG_MAX * 2ULL + 1ULL)
"""
_FLOAT = "#pragma once\n#define FLT_RADIX __FLT_RADIX__\n" + "".join(
    f"#define {of}_{name} __{of}_{name}__\n"
    for of in ("FLT", "DBL", "LDBL")
    for name in (
        *("MAX", "MIN", "EPSILON", "DIG", "MANT_DIG"),
        *("MIN_EXP", "MAX_EXP", "MIN_10_EXP", "MAX_10_EXP"),
    )
)
_EXTERN = ('#ifdef __cplusplus\nextern "C" {\n#endif\n', "#ifdef __cplusplus\n}\n#endif\n")


def _c(text: str, includes: str = "stddef.h") -> str:
    """Return a C header with declarations."""
    lines = [f"#include <{name}>\n" for name in includes.split()]
    return "#pragma once\n" + "".join(lines) + _EXTERN[0] + text + _EXTERN[1]


_STDIO = _c(
    "typedef struct _IO_FILE FILE;\nextern FILE *stdin, *stdout, *stderr;\n"
    "int printf(const char *, ...);\nint fprintf(FILE *, const char *, ...);\n"
    "int snprintf(char *, size_t, const char *, ...);\nint sprintf(char *, const char *, ...);\n"
    "FILE *fopen(const char *, const char *);\nint fclose(FILE *);\n"
    "size_t fread(void *, size_t, size_t, FILE *);\n"
    "size_t fwrite(const void *, size_t, size_t, FILE *);\nint fflush(FILE *);\n"
)
_STDLIB = _c(
    "typedef struct { int quot, rem; } div_t;\ntypedef struct { long quot, rem; } ldiv_t;\n"
    "typedef struct { long long quot, rem; } lldiv_t;\n"
    "void *malloc(size_t);\nvoid *calloc(size_t, size_t);\nvoid *realloc(void *, size_t);\n"
    "void free(void *);\nvoid abort(void);\nvoid exit(int);\nint abs(int);\n"
    "char *getenv(const char *);\nint atoi(const char *);\nlong atol(const char *);\n"
    "long long atoll(const char *);\ndouble atof(const char *);\nint atexit(void (*)(void));\n"
    "void _Exit(int);\nlong labs(long);\nlong long llabs(long long);\nint rand(void);\n"
    "div_t div(int, int);\nldiv_t ldiv(long, long);\nlldiv_t lldiv(long long, long long);\n"
    "void qsort(void *, size_t, size_t, int (*)(const void *, const void *));\n"
    "void *bsearch(const void *, const void *, size_t, size_t,\n"
    "              int (*)(const void *, const void *));\n"
    "int mblen(const char *, size_t);\nsize_t mbstowcs(wchar_t *, const char *, size_t);\n"
    "int mbtowc(wchar_t *, const char *, size_t);\nint wctomb(char *, wchar_t);\n"
    "size_t wcstombs(char *, const wchar_t *, size_t);\n"
    "void srand(unsigned);\ndouble strtod(const char *, char **);\nint system(const char *);\n"
    "long double strtold(const char *, char **);\nfloat strtof(const char *, char **);\n"
    "long long strtoll(const char *, char **, int);\n"
    "unsigned long strtoul(const char *, char **, int);\n"
    "unsigned long long strtoull(const char *, char **, int);\n"
    "long strtol(const char *, char **, int);\n"
)
_STRING = _c(
    "void *memcpy(void *, const void *, size_t);\nvoid *memmove(void *, const void *, size_t);\n"
    "void *memset(void *, int, size_t);\nint memcmp(const void *, const void *, size_t);\n"
    "size_t strlen(const char *);\nint strcmp(const char *, const char *);\n"
    "int strncmp(const char *, const char *, size_t);\nchar *strcpy(char *, const char *);\n"
    "char *strncpy(char *, const char *, size_t);\nchar *strcat(char *, const char *);\n"
    "char *strchr(const char *, int);\nchar *strrchr(const char *, int);\n"
    "char *strstr(const char *, const char *);\nchar *strdup(const char *);\n"
    "void *memchr(const void *, int, size_t);\nchar *strncat(char *, const char *, size_t);\n"
    "int strcoll(const char *, const char *);\nsize_t strcspn(const char *, const char *);\n"
    "char *strpbrk(const char *, const char *);\nchar *strrchr(const char *, int);\n"
    "size_t strspn(const char *, const char *);\nchar *strtok(char *, const char *);\n"
    "size_t strxfrm(char *, const char *, size_t);\nchar *strerror(int);\n"
)
_MATH_OF_ONE = (
    "acos acosh asin asinh atan atanh cbrt ceil cos cosh erf erfc exp exp2 expm1 fabs floor lgamma "
    "log log10 log1p log2 logb nearbyint rint round sin sinh sqrt tan tanh tgamma trunc"
)
_MATH_OF_TWO = "atan2 copysign fdim fmax fmin fmod hypot nextafter pow remainder"
_MATH_TYPES = (("double", ""), ("float", "f"), ("long double", "l"))
_MATH_KINDS = "isfinite isinf isnan isnormal signbit"


def _math_of(of: str, end: str) -> str:
    """Return the declarations of functions for a floating-point type."""
    lines = [f"{of} {name}{end}({of});" for name in _MATH_OF_ONE.split()]
    lines += (f"{of} {name}{end}({of}, {of});" for name in _MATH_OF_TWO.split())
    lines += (f"{of} {name}{end}({of}, int);" for name in ("ldexp", "scalbn"))
    lines.append(f"{of} fma{end}({of}, {of}, {of});")
    lines.append(f"{of} frexp{end}({of}, int *);\n{of} modf{end}({of}, {of} *);\n")
    return "\n".join(lines)


_MATH = (
    _c("".join(_math_of(of, end) for of, end in _MATH_TYPES))
    + '#define INFINITY __builtin_inff()\n#define NAN __builtin_nanf("")\n'
    "#define FP_NAN 0\n#define FP_INFINITE 1\n#define FP_ZERO 2\n#define FP_SUBNORMAL 3\n"
    "#define FP_NORMAL 4\n#ifdef __cplusplus\n"
    + "".join(f"template <class T> bool {name}(T);\n" for name in _MATH_KINDS.split())
    + "#else\n#define isnan(x) __builtin_isnan(x)\n#define isinf(x) __builtin_isinf(x)\n#endif\n"
)
_STDARG = """\
#pragma once
typedef __builtin_va_list va_list;
#define va_start(list, last) __builtin_va_start(list, last)
#define va_end(list) __builtin_va_end(list)
#define va_arg(list, type) __builtin_va_arg(list, type)
"""
_STDBOOL = """\
#pragma once
#ifndef __cplusplus
#define bool _Bool
#define true 1
#define false 0
#endif
"""
_ASSERT = """\
#pragma once
#define assert(condition) ((void)0)
#ifndef __cplusplus
#define static_assert _Static_assert
#endif
"""
_TIME = _c(
    "typedef long time_t;\ntypedef long clock_t;\n"
    "struct tm { int tm_sec, tm_min, tm_hour, tm_mday, tm_mon, tm_year, tm_wday, tm_yday; };\n"
    "time_t time(time_t *);\nclock_t clock(void);\ndouble difftime(time_t, time_t);\n"
    "struct timespec { time_t tv_sec; long tv_nsec; };\n"
    "struct timeval { time_t tv_sec; long tv_usec; };\n"
)
_TYPES = _c(
    "typedef long ssize_t;\ntypedef long off_t;\ntypedef int pid_t;\ntypedef unsigned int uid_t;\n"
    "typedef unsigned int gid_t;\ntypedef unsigned int mode_t;\ntypedef long long loff_t;\n",
    "stddef.h stdint.h time.h",
)
_SOCKET = _c(
    "typedef unsigned short sa_family_t;\ntypedef unsigned int socklen_t;\n"
    "struct sockaddr { sa_family_t sa_family; char sa_data[14]; };\n"
    "struct in_addr { uint32_t s_addr; };\nstruct in6_addr { uint8_t s6_addr[16]; };\n"
    "struct sockaddr_in { sa_family_t sin_family; uint16_t sin_port; struct in_addr sin_addr; };\n",
    "sys/types.h",
)
_GL = _c(
    "typedef unsigned int GLenum;\ntypedef unsigned int GLuint;\ntypedef int GLint;\n"
    "typedef int GLsizei;\ntypedef unsigned char GLboolean;\ntypedef float GLfloat;\n"
)
_VDPAU = _c(
    "typedef uint32_t VdpDevice;\ntypedef uint32_t VdpVideoSurface;\n"
    "typedef uint32_t VdpOutputSurface;\ntypedef uint32_t VdpStatus;\ntypedef uint32_t VdpFuncId;\n"
    "typedef VdpStatus VdpGetProcAddress(VdpDevice, VdpFuncId, void **);\n",
    "stddef.h stdint.h",
)
_EGL = _c(
    "typedef void *EGLDisplay;\ntypedef void *EGLImageKHR;\ntypedef void *EGLStreamKHR;\n"
    "typedef void *EGLSyncKHR;\ntypedef void *EGLContext;\ntypedef int32_t EGLint;\n"
    "typedef unsigned int EGLBoolean;\ntypedef unsigned int EGLenum;\n",
    "stddef.h stdint.h",
)
_VECTORS = """\
#pragma once
typedef float __m128 __attribute__((vector_size(16)));
typedef double __m128d __attribute__((vector_size(16)));
typedef long long __m128i __attribute__((vector_size(16)));
typedef long long __m64 __attribute__((vector_size(8)));
"""
_COMPLEX = "#pragma once\n#define complex _Complex\n#define I 1.0fi\n"
_MPI = _c(
    "typedef struct ompi_communicator_t *MPI_Comm;\ntypedef struct ompi_datatype_t *MPI_Datatype;\n"
)
_NCCL = _c("typedef struct ncclComm *ncclComm_t;\n")

MISSING_HEADERS = {
    "nv/target": b"""\
#pragma once
#define NV_IF_TARGET(...)
#define NV_IF_ELSE_TARGET(...)
#define NV_DISPATCH_TARGET(...)
"""
}
"""Headers that some packages lack: the wheels of CUDA 12.0 to 12.4 have no `nv/`.

They select code inside of functions, which is not read.
"""

STUBS: dict[str, str] = {
    "arpa/inet.h": "#include <sys/socket.h>\n",
    "assert.h": _ASSERT,
    "complex.h": _COMPLEX,
    "ctype.h": _c(""),
    "errno.h": _c(""),
    "float.h": _FLOAT,
    "inttypes.h": "#include <stdint.h>\n",
    "limits.h": _LIMITS,
    "math.h": _MATH,
    "memory.h": "#include <string.h>\n",
    "mmintrin.h": _VECTORS,
    "mpi.h": _MPI,
    "nccl.h": _NCCL,
    "netinet/in.h": "#include <sys/socket.h>\n",
    "fcntl.h": _c(""),
    "features.h": "#pragma once\n#define __GLIBC_PREREQ(major, minor) 1\n",
    "linux/futex.h": _c(""),
    "sys/syscall.h": _c(""),
    "semaphore.h": _c("typedef union { char size[32]; long align; } sem_t;\n"),
    "sched.h": _c("int sched_yield(void);\n"),
    "pthread.h": "#include <sys/types.h>\n",
    "xmmintrin.h": _VECTORS,
    "dlfcn.h": _c("void *dlopen(const char *, int);\nvoid *dlsym(void *, const char *);\n"),
    "emmintrin.h": _VECTORS,
    "stdalign.h": "#pragma once\n#ifndef __cplusplus\n#define alignas _Alignas\n#endif\n",
    "stdarg.h": _STDARG,
    "stdbool.h": _STDBOOL,
    "stddef.h": _STDDEF,
    "stdint.h": _STDINT,
    "stdio.h": _STDIO,
    "stdlib.h": _STDLIB,
    "string.h": _STRING,
    "sys/socket.h": _SOCKET,
    "sys/time.h": "#include <time.h>\n",
    "sys/types.h": _TYPES,
    "time.h": _TIME,
    "unistd.h": "#include <sys/types.h>\n",
    "wchar.h": _c("typedef unsigned int wint_t;\nsize_t wcslen(const wchar_t *);\n"),
    "EGL/egl.h": _EGL,
    "EGL/eglext.h": "#include <EGL/egl.h>\n",
    "GL/gl.h": _GL,
    "vdpau/vdpau.h": _VDPAU,
}
"""The text of each header by path."""

for _name in ("assert", "float", "limits", "math", "stddef", "stdint", "stdio", "stdlib", "string"):
    # Some headers of C include one of these in any language, such as those of cuTENSOR 1.7.
    STUBS[f"c{_name}"] = f"#include <{_name}.h>\n#ifdef __cplusplus\n#include <utility>\n#endif\n"
STUBS["utility"] = CPP_LIBRARY_TEXT
for _name in sorted(CPP_HEADERS):
    STUBS.setdefault(_name, "#include <utility>\n")
