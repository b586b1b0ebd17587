package construct_messages.spark;

import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.Arrays;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * What a thread has read last: dumps repeat their predicates and datatypes, and mostly have the triples of a subject
 * one after the other. What is the same need not be checked again, nor the scope of a file be computed.
 *
 * <p>All of it is copied, as Spark writes over the bytes of its rows.
 */
final class Recent {
  private static final ThreadLocal<Recent> OF_THREAD = ThreadLocal.withInitial(Recent::new);
  private static final int LONGEST = 256;
  private static final int SLOT_BITS = 10;
  private static final int SCOPE_BYTES = 8; // of a digest; each is two digits
  private static final long ONES = 0x0101010101010101L;
  private static final long TOPS = 0x80 * ONES;

  private final byte[] subject = new byte[LONGEST];
  private int subjectSize;
  private final UTF8String[] iris = new UTF8String[1 << SLOT_BITS];
  private UTF8String file;
  private UTF8String scope;

  static Recent ofThread() {
    return OF_THREAD.get();
  }

  /** Behind the subject that begins there, if it is the one kept; else {@code start}. */
  int behindSubject(byte[] bytes, int start, int end) {
    int behind = start + subjectSize;
    return behind <= end && Arrays.equals(subject, 0, subjectSize, bytes, start, behind) ? behind : start;
  }

  /** Keeps an IRI, in its brackets, as the subject. */
  void keepSubject(byte[] bytes, int start, int behind) {
    subjectSize = behind - start <= LONGEST ? behind - start : 0;
    System.arraycopy(bytes, start, subject, 0, subjectSize);
  }

  /** The IRI that begins there, in its brackets, if it is one of those kept; else null. */
  UTF8String iri(byte[] bytes, int start, int end) {
    int behind = start;
    while (behind + Long.BYTES <= end && !hasBracket(word(bytes, behind))) {
      behind += Long.BYTES;
    }
    while (behind < end && bytes[behind] != '>') {
      behind++;
    }
    behind++;
    int size = behind - start;
    if (behind > end || size < Long.BYTES || size > LONGEST) {
      return null;
    }
    UTF8String kept = iris[slot(bytes, behind)];
    return kept != null && Arrays.equals((byte[]) kept.getBaseObject(), 0, kept.numBytes(), bytes, start, behind)
        ? kept
        : null;
  }

  /** Keeps an IRI, in its brackets. */
  UTF8String keep(byte[] bytes, int start, int behind) {
    UTF8String iri = UTF8String.fromBytes(Arrays.copyOfRange(bytes, start, behind));
    int size = behind - start;
    if (size >= Long.BYTES && size <= LONGEST) {
      iris[slot(bytes, behind)] = iri;
    }
    return iri;
  }

  /** By the last characters, in which the IRIs of a vocabulary differ. */
  private static int slot(byte[] bytes, int behind) {
    return (int) (word(bytes, behind - Long.BYTES) * 0x9E3779B97F4A7C15L >>> Long.SIZE - SLOT_BITS);
  }

  private static long word(byte[] bytes, int at) {
    return Platform.getLong(bytes, Platform.BYTE_ARRAY_OFFSET + at);
  }

  private static boolean hasBracket(long word) {
    long others = word ^ ONES * '>';
    return (others - ONES & ~others & TOPS) != 0;
  }

  /** What blank nodes of a file begin with: {@code _:}, and what their labels get in front, see {@code labels.py}. */
  UTF8String scope(UTF8String file) {
    if (!file.equals(this.file)) {
      this.file = file.clone();
      scope = UTF8String.fromString("_:f" + digits(file.toString()) + "_");
    }
    return scope;
  }

  private static String digits(String file) {
    byte[] digest;
    try {
      digest = MessageDigest.getInstance("SHA-256").digest(file.getBytes(StandardCharsets.UTF_8));
    } catch (NoSuchAlgorithmException error) {
      throw new IllegalStateException(error); // each Java has it
    }
    StringBuilder digits = new StringBuilder();
    for (int i = 0; i < SCOPE_BYTES; i++) {
      digits.append(Character.forDigit(digest[i] >> 4 & 0xF, 16)).append(Character.forDigit(digest[i] & 0xF, 16));
    }
    return digits.toString();
  }
}
