"""A small C++ library in place of a compiler's.

It declares the types and functions that headers of CUDA name in their own declarations. Classes
have few members, because the bodies of functions are not read.
"""

from collections.abc import Iterator

_WITH_INTEGERS = " ".join(
    f"{sign}int{kind}{bits}_t"
    for sign in ("", "u")
    for kind in ("", "_least", "_fast")
    for bits in (8, 16, 32, 64)
)
_FROM_C = (
    f"size_t ptrdiff_t max_align_t intptr_t uintptr_t intmax_t uintmax_t {_WITH_INTEGERS} memcpy "
    "memmove memset memcmp strlen fabs sqrt abs isfinite isinf isnan isnormal signbit malloc free "
    "abort exit getenv printf fprintf FILE time_t clock_t"
)
_CLASSES = (
    "thread future_error locale ios_base streambuf type_index condition_variable "
    "once_flag align_val_t"
)
_EXCEPTIONS = (
    "bad_alloc bad_cast bad_typeid bad_function_call bad_variant_access bad_optional_access "
    "logic_error runtime_error domain_error invalid_argument length_error out_of_range range_error "
    "overflow_error underflow_error"
)
_TEMPLATES = (
    "function unique_lock lock_guard shared_ptr weak_ptr vector "
    "deque list map multimap multiset set unordered_map unordered_set "
    "basic_iostream basic_stringstream basic_ostringstream basic_string_view "
    "optional variant future promise less greater equal_to plus minus "
    "multiplies reverse_iterator move_iterator span "
    "basic_format_arg formatter istreambuf_iterator ostream_iterator back_insert_iterator stack "
    "queue bitset function_ref valarray packaged_task"
)
_TEMPLATES_OF_ONE = "allocator atomic char_traits complex hash reference_wrapper"
_PREDICATES = {
    "abstract": "__is_abstract(T)",
    "aggregate": "__is_aggregate(T)",
    "arithmetic": "__is_arithmetic(T)",
    "array": "__is_array(T)",
    "class": "__is_class(T)",
    "compound": "__is_compound(T)",
    "const": "__is_const(T)",
    "copy_assignable": "__is_assignable(T &, const T &)",
    "copy_constructible": "__is_constructible(T, const T &)",
    "default_constructible": "__is_constructible(T)",
    "destructible": "true",
    "empty": "__is_empty(T)",
    "enum": "__is_enum(T)",
    "final": "__is_final(T)",
    "floating_point": "__is_floating_point(T)",
    "function": "__is_function(T)",
    "fundamental": "__is_fundamental(T)",
    "integral": "__is_integral(T)",
    "literal_type": "__is_literal_type(T)",
    "lvalue_reference": "__is_lvalue_reference(T)",
    "member_function_pointer": "__is_member_function_pointer(T)",
    "member_object_pointer": "__is_member_object_pointer(T)",
    "member_pointer": "__is_member_pointer(T)",
    "move_assignable": "__is_assignable(T &, T &&)",
    "move_constructible": "__is_constructible(T, T &&)",
    "nothrow_copy_constructible": "__is_nothrow_constructible(T, const T &)",
    "nothrow_default_constructible": "__is_nothrow_constructible(T)",
    "nothrow_move_assignable": "__is_nothrow_assignable(T &, T &&)",
    "nothrow_move_constructible": "__is_nothrow_constructible(T, T &&)",
    "null_pointer": "__is_same(T, decltype(nullptr))",
    "object": "__is_object(T)",
    "pod": "__is_pod(T)",
    "pointer": "__is_pointer(T)",
    "polymorphic": "__is_polymorphic(T)",
    "reference": "__is_reference(T)",
    "rvalue_reference": "__is_rvalue_reference(T)",
    "scalar": "__is_scalar(T)",
    "signed": "__is_signed(T)",
    "standard_layout": "__is_standard_layout(T)",
    "trivial": "__is_trivial(T)",
    "trivially_copy_constructible": "__is_trivially_constructible(T, const T &)",
    "trivially_copyable": "__is_trivially_copyable(T)",
    "trivially_default_constructible": "__is_trivially_constructible(T)",
    "trivially_destructible": "true",
    "union": "__is_union(T)",
    "unsigned": "__is_unsigned(T)",
    "void": "__is_void(T)",
    "volatile": "__is_volatile(T)",
}
"""Traits of one type, by name without `is_`."""
_PREDICATES_OF_MORE = {
    "assignable": "__is_assignable(T, More...)",
    "base_of": "__is_base_of(T, More...)",
    "constructible": "__is_constructible(T, More...)",
    "convertible": "__is_convertible_to(T, More...)",
    "invocable": "true",
    "nothrow_assignable": "__is_nothrow_assignable(T, More...)",
    "nothrow_constructible": "__is_nothrow_constructible(T, More...)",
    "nothrow_invocable": "true",
    "same": "__is_same(T, More...)",
    "swappable": "true",
    "trivially_assignable": "__is_trivially_assignable(T, More...)",
    "trivially_constructible": "__is_trivially_constructible(T, More...)",
}
"""Traits of several types, which are equal in this library."""
_TRANSFORMATIONS = {
    "add_const": "const T",
    "add_cv": "const volatile T",
    "add_lvalue_reference": "__add_lvalue_reference(T)",
    "add_pointer": "__add_pointer(T)",
    "add_rvalue_reference": "__add_rvalue_reference(T)",
    "add_volatile": "volatile T",
    "decay": "__decay(T)",
    "make_signed": "__make_signed(T)",
    "make_unsigned": "__make_unsigned(T)",
    "remove_all_extents": "__remove_all_extents(T)",
    "remove_const": "__remove_const(T)",
    "remove_cv": "__remove_cv(T)",
    "remove_cvref": "__remove_cvref(T)",
    "remove_extent": "__remove_extent(T)",
    "remove_pointer": "__remove_pointer(T)",
    "remove_reference": "__remove_reference_t(T)",
    "remove_volatile": "__remove_volatile(T)",
    "type_identity": "T",
    "underlying_type": "__underlying_type(T)",
}
"""Types made of a type."""


def _lines() -> Iterator[str]:
    yield "#pragma once"
    # CCCL selects its code for one of the known libraries.
    yield "#define __GLIBCXX__ 20230601"
    for name in ("stddef", "stdint", "string", "math", "stdio", "stdlib", "time"):
        yield f"#include <{name}.h>"
    yield "namespace __gnu_cxx { template <class T, class C> class __normal_iterator {}; }"
    yield "namespace std {"
    yield from (f"using ::{name};" for name in _FROM_C.split())
    yield """
typedef decltype(nullptr) nullptr_t;
template <class T, T v> struct integral_constant {
  static constexpr T value = v;
  typedef T value_type;
  typedef integral_constant type;
  constexpr operator T() const { return v; }
  constexpr T operator()() const { return v; }
};
template <bool v> using bool_constant = integral_constant<bool, v>;
typedef bool_constant<true> true_type;
typedef bool_constant<false> false_type;
template <class... T> using void_t = void;
template <bool, class T = void> struct enable_if {};
template <class T> struct enable_if<true, T> { typedef T type; };
template <bool b, class T = void> using enable_if_t = typename enable_if<b, T>::type;
template <bool, class T, class F> struct conditional { typedef T type; };
template <class T, class F> struct conditional<false, T, F> { typedef F type; };
template <bool b, class T, class F> using conditional_t = typename conditional<b, T, F>::type;
"""
    for name, value in _PREDICATES.items():
        yield f"template <class T> struct is_{name} : bool_constant<{value}> {{}};"
        yield f"template <class T> constexpr bool is_{name}_v = {value};"
    for name, value in _PREDICATES_OF_MORE.items():
        yield f"template <class T, class... More> struct is_{name} : bool_constant<{value}> {{}};"
        yield f"template <class T, class... More> constexpr bool is_{name}_v = {value};"
    for name, value in _TRANSFORMATIONS.items():
        yield f"template <class T> struct {name} {{ typedef {value} type; }};"
        yield f"template <class T> using {name}_t = typename {name}<T>::type;"
    yield from (f"class {name} {{}};" for name in _CLASSES.split())
    yield "class exception { public: virtual ~exception(); virtual const char *what() const; };"
    for name in _EXCEPTIONS.split():
        yield f"class {name} : public exception {{ public: {name}(const char * = 0); }};"
    yield from (f"template <class... T> class {name} {{}};" for name in _TEMPLATES.split())
    yield from (f"template <class T> class {name} {{}};" for name in _TEMPLATES_OF_ONE.split())
    yield """
template <class T> class initializer_list {
 public:
  constexpr initializer_list() {}
  size_t size() const;
  const T *begin() const;
  const T *end() const;
};
template <class T, class U> struct pair { T first; U second; };
template <class... T> class tuple {};
template <class T> struct tuple_size;
template <size_t i, class T> struct tuple_element;
template <size_t i, class T> using tuple_element_t = typename tuple_element<i, T>::type;
template <class T, size_t size> struct array { T items[size ? size : 1]; };
template <class T, T... values> struct integer_sequence { typedef T value_type; };
template <size_t... values> using index_sequence = integer_sequence<size_t, values...>;
template <class T, T size>
using make_integer_sequence = __make_integer_seq<integer_sequence, T, size>;
template <size_t size> using make_index_sequence = make_integer_sequence<size_t, size>;
template <class T> add_rvalue_reference_t<T> declval() noexcept;
template <class T> constexpr T &&forward(remove_reference_t<T> &) noexcept;
template <class T> constexpr remove_reference_t<T> &&move(T &&) noexcept;
template <class T> void swap(T &, T &);
template <class... T> tuple<T...> make_tuple(T &&...);
template <class... T> tuple<T &...> tie(T &...);
template <size_t i, class T> auto &get(T &&);
template <class T> T *addressof(T &);
template <class T, class C = char_traits<T>, class A = allocator<T>> class basic_string {};
template <class T, class C = char_traits<T>> class basic_istream {};
template <class T, class C = char_traits<T>> class basic_ostream {};
template <class T> constexpr T &&move_if_noexcept(T &) noexcept;
template <class T> struct numeric_limits {
  static constexpr bool is_signed = T(-1) < T(0), is_integer = __is_integral(T);
  static constexpr int digits = 0, digits10 = 0, radix = 2;
  static constexpr T max() { return T(); }
  static constexpr T min() { return T(); }
  static constexpr T lowest() { return T(); }
};
template <class T> class allocator_traits {
 public:
  template <class U> using rebind_alloc = allocator<U>;
};
template <class... T> struct common_type { typedef int type; };
template <class... T> using common_type_t = typename common_type<T...>::type;
template <class F> struct result_of { typedef int type; };
template <class... T> struct invoke_result { typedef int type; };
template <class... T> using invoke_result_t = typename invoke_result<T...>::type;
template <class... B> struct conjunction : true_type {};
template <class... B> struct disjunction : true_type {};
template <class B> struct negation : true_type {};
template <class... B> constexpr bool conjunction_v = true;
template <class... B> constexpr bool disjunction_v = true;
template <class B> constexpr bool negation_v = true;
template <class T> struct alignment_of : integral_constant<size_t, alignof(T)> {};
template <class T> struct rank : integral_constant<size_t, 0> {};
template <class T, unsigned i = 0> struct extent : integral_constant<size_t, 0> {};
template <size_t size, size_t alignment = 8> struct aligned_storage {
  struct type { alignas(alignment) char data[size]; };
};
struct input_iterator_tag {};
struct output_iterator_tag {};
struct forward_iterator_tag : input_iterator_tag {};
struct bidirectional_iterator_tag : forward_iterator_tag {};
struct random_access_iterator_tag : bidirectional_iterator_tag {};
struct contiguous_iterator_tag : random_access_iterator_tag {};
template <class T> struct __iterator_traits {};
template <class T> struct iterator_traits {
  typedef ptrdiff_t difference_type;
  typedef T value_type;
  typedef T *pointer;
  typedef T &reference;
  typedef random_access_iterator_tag iterator_category;
};
template <class T> struct iterator_traits<T *> {
  typedef ptrdiff_t difference_type;
  typedef __remove_cv(T) value_type;
  typedef T *pointer;
  typedef T &reference;
  typedef random_access_iterator_tag iterator_category;
};
template <class T> struct default_delete {};
template <class T, class D = default_delete<T>> class unique_ptr {
 public:
  T *get() const;
  T *release();
  void reset(T *);
};
template <class F> auto mem_fn(F);
enum class byte : unsigned char {};
enum memory_order {
  memory_order_relaxed, memory_order_consume, memory_order_acquire, memory_order_release,
  memory_order_acq_rel, memory_order_seq_cst
};
enum class errc { address_family_not_supported };
class mutex {};
class error_condition {};
class error_code {};
class error_category {};
class system_error : public runtime_error {};
struct nothrow_t {};
extern const nothrow_t nothrow;
struct piecewise_construct_t {};
struct in_place_t {};
struct nullopt_t {};
struct type_info { const char *name() const; };
template <intmax_t n, intmax_t d = 1> struct ratio {};
namespace chrono {
template <class T, class P = ratio<1>> class duration {};
template <class C, class D = int> class time_point {};
typedef duration<long, ratio<1, 1000000000>> nanoseconds;
struct system_clock {};
struct steady_clock {};
struct high_resolution_clock {};
}
typedef basic_string<char> string;
typedef basic_string_view<char> string_view;
typedef basic_istream<char> istream;
typedef basic_ostream<char> ostream;
typedef basic_iostream<char> iostream;
typedef basic_stringstream<char> stringstream;
typedef basic_ostringstream<char> ostringstream;
extern istream cin;
extern ostream cout, cerr;
}
void *operator new(size_t, void *) noexcept;
"""


CPP_LIBRARY_TEXT = "\n".join(_lines())
"""The text of all its headers."""
_HEADERS = (
    "algorithm array atomic bitset cassert cctype cerrno chrono ciso646 climits cmath complex "
    "concepts condition_variable cstdarg cstddef cstdint cstdio cstdlib cstring ctime exception "
    "fstream functional future initializer_list iomanip ios iosfwd iostream istream iterator "
    "limits list locale map memory mutex new numeric optional ostream queue random ranges ratio "
    "set sstream stack stdexcept string string_view streambuf system_error thread tuple "
    "type_traits typeindex typeinfo unordered_map unordered_set utility valarray variant vector "
    "version"
)
CPP_HEADERS = frozenset(_HEADERS.split())
"""The names of its headers."""
