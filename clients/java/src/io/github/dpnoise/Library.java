package io.github.dpnoise;

import com.sun.jna.Callback;
import com.sun.jna.Native;
import com.sun.jna.NativeLibrary;
import com.sun.jna.Pointer;
import com.sun.jna.ptr.PointerByReference;

/**
 * The C interface, as {@code dpnoise.h} documents it: the functions that every build of it has. A {@code size_t} is
 * passed as a pointer, which is as wide: JNA's own way needs a public class.
 */
final class Library {
    private static final int ABI_VERSION = 1;

    private static final NativeLibrary LIBRARY = NativeLibrary.getInstance("dpnoise");

    static {
        int version = LIBRARY.getFunction("dpnoise_abi_version").invokeInt(new Object[0]);
        if (version != ABI_VERSION) {
            throw new UnsatisfiedLinkError(String.format(
                    "%s must have version %d of its interface, got %d: install the native library of this release",
                    LIBRARY.getFile(), ABI_VERSION, version));
        }
        register(Library.class);
    }

    private Library() {}

    /** Binds the native methods of a class. */
    static void register(Class<?> functions) {
        Native.register(functions, LIBRARY);
    }

    /** Writes random bytes, and returns 0; or returns another number. */
    interface RandomBytes extends Callback {
        int invoke(Pointer context, Pointer out, Pointer length);
    }

    static Pointer size(long size) {
        return Pointer.createConstant(size);
    }

    static long value(PointerByReference size) {
        return Pointer.nativeValue(size.getValue());
    }

    /** Throws what the last call of this thread returned, unless that is success. */
    static void check(int status) {
        if (status != 0) {
            throw new DpnoiseException(Status.of(status), dpnoise_error_message().getString(0, "UTF-8"));
        }
    }

    private static native Pointer dpnoise_error_message();

    static native int dpnoise_free(long handle);

    static native int dpnoise_generator_new(RandomBytes fill, Pointer context, long[] out);
}
