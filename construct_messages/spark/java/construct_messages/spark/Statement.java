package construct_messages.spark;

import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.connector.catalog.functions.BoundFunction;
import org.apache.spark.sql.connector.catalog.functions.ScalarFunction;
import org.apache.spark.sql.connector.catalog.functions.UnboundFunction;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * {@code statement(line, file, graphs, lenient)}: the terms of a line of N-Triples or N-Quads.
 *
 * <p>RDF 1.2 N-Triples, sections 4 (canonical form) and 7 (grammar). Lines in canonical form are scanned here, without
 * copying them. What is rare is left to {@link Tokens}: triple terms, labels beyond ASCII, hosts with users, brackets or
 * percent signs, private characters of queries, long language tags, escapes by number, and all that is malformed.
 *
 * <p>A position is an address of Spark's; {@code BAD} stands for no match, and whatever begins there is no match.
 */
public final class Statement implements UnboundFunction, ScalarFunction<InternalRow> {
  private static final long BAD = -1;

  private static final int LETTER = 1;
  private static final int LOWER = 2;
  private static final int DIGIT = 4;
  private static final int HEX = 8;
  private static final int SCHEME = 16;
  private static final int HOST = 32;
  private static final int IRI = 64;
  private static final int LABEL = 128;
  private static final int PLAIN = 256;
  private static final int ESCAPED = 512;
  private static final short[] KINDS = new short[128];

  static {
    kind("abcdefghijklmnopqrstuvwxyz", LOWER | LETTER | SCHEME | HOST | IRI | LABEL);
    kind("ABCDEFGHIJKLMNOPQRSTUVWXYZ", LETTER | SCHEME | HOST | IRI | LABEL);
    kind("0123456789", DIGIT | HEX | SCHEME | HOST | IRI | LABEL);
    kind("abcdefABCDEF", HEX);
    kind("+-.", SCHEME);
    kind("-._~!$&'()*+,;=", HOST | IRI);
    kind(":@/?", IRI);
    kind("_-.", LABEL);
    kind("tbnrf\"\\", ESCAPED);
    for (int c = ' '; c <= '~'; c++) {
      if (c != '"' && c != '\\') {
        KINDS[c] |= PLAIN;
      }
    }
  }

  private static void kind(String characters, int kinds) {
    for (char c : characters.toCharArray()) {
      KINDS[c] |= kinds;
    }
  }

  private static final String RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#";
  static final String STRING = "<http://www.w3.org/2001/XMLSchema#string>";
  static final String LANG_STRING = "<" + RDF + "langString>";
  static final String DIR_LANG_STRING = "<" + RDF + "dirLangString>";
  private static final UTF8String[] NOT_A_DATATYPE = {
    UTF8String.fromString(STRING), UTF8String.fromString(LANG_STRING), UTF8String.fromString(DIR_LANG_STRING),
  };
  private static final int SCOPE_BYTES = 8; // of a digest; each is two digits

  private static final DataType RESULT =
      new StructType(
          new StructField[] {
            DataTypes.createStructField("subject", DataTypes.StringType, true),
            DataTypes.createStructField("predicate", DataTypes.StringType, true),
            DataTypes.createStructField("object", DataTypes.StringType, true),
            DataTypes.createStructField("graph", DataTypes.StringType, true),
          });

  /**
   * The terms of a line; no terms where it is blank, a comment or a version; null where it is malformed.
   *
   * @param line text without its line break, not necessarily of UTF-8
   * @param file its name, of which labels of blank nodes get a part in front
   * @param graphs whether a statement may name a graph (N-Quads)
   * @param lenient whether malformed IRIs and language tags are passed
   */
  public static InternalRow invoke(UTF8String line, UTF8String file, boolean graphs, boolean lenient) {
    if (line == null) {
      return null;
    }
    InternalRow statement = canonical(line, file, graphs);
    return statement == null ? Tokens.statement(line, file, graphs, lenient) : statement;
  }

  /** The terms of a line, or null where it is not known to be a statement in canonical form. */
  private static InternalRow canonical(UTF8String line, UTF8String file, boolean graphs) {
    Object base = line.getBaseObject();
    long subject = line.getBaseOffset();
    long end = subject + line.numBytes();
    long afterSubject = node(base, subject, end);
    long predicate = after(base, afterSubject, end, ' ');
    long afterPredicate = iri(base, predicate, end);
    long object = after(base, afterPredicate, end, ' ');
    boolean text = at(base, object, end) == '"';
    long afterObject = text ? literal(base, object, end) : node(base, object, end);
    long next = after(base, afterObject, end, ' ');
    UTF8String graph = null;
    if (graphs && next != BAD && at(base, next, end) != '.') {
      long afterGraph = node(base, next, end);
      graph = afterGraph == BAD ? null : scoped(base, next, afterGraph, file);
      next = after(base, afterGraph, end, ' ');
    }
    if (after(base, next, end, '.') != end) {
      return null;
    }
    return row(
        scoped(base, subject, afterSubject, file),
        slice(base, predicate, afterPredicate),
        scoped(base, object, afterObject, file),
        graph);
  }

  static InternalRow row(UTF8String subject, UTF8String predicate, UTF8String object, UTF8String graph) {
    return new GenericInternalRow(new Object[] {subject, predicate, object, graph});
  }

  /** A term, with the scope of its file in the label if it is a blank node. */
  private static UTF8String scoped(Object base, long start, long end, UTF8String file) {
    if (at(base, start, end) != '_') {
      return slice(base, start, end);
    }
    return UTF8String.concat(UTF8String.fromString("_:" + scope(file)), slice(base, start + 2, end));
  }

  /** What labels of blank nodes of a file get in front, as {@code labels.py} has it. */
  static String scope(UTF8String file) {
    byte[] digest;
    try {
      digest = MessageDigest.getInstance("SHA-256").digest(file.toString().getBytes(StandardCharsets.UTF_8));
    } catch (NoSuchAlgorithmException error) {
      throw new IllegalStateException(error); // each Java has it
    }
    StringBuilder scope = new StringBuilder("f");
    for (int i = 0; i < SCOPE_BYTES; i++) {
      scope.append(Character.forDigit(digest[i] >> 4 & 0xF, 16)).append(Character.forDigit(digest[i] & 0xF, 16));
    }
    return scope.append('_').toString();
  }

  private static UTF8String slice(Object base, long start, long end) {
    return UTF8String.fromAddress(base, start, (int) (end - start));
  }

  /** The byte there, or 0, which no term has. */
  private static byte at(Object base, long at, long end) {
    return at == BAD || at >= end ? 0 : Platform.getByte(base, at);
  }

  private static long after(Object base, long at, long end, char expected) {
    return at(base, at, end) == expected ? at + 1 : BAD;
  }

  private static boolean is(Object base, long at, long end, int kind) {
    byte c = at(base, at, end);
    return c >= 0 && (KINDS[c] & kind) != 0;
  }

  /** Behind all bytes of a kind. */
  private static long run(Object base, long at, long end, int kind) {
    while (is(base, at, end, kind)) {
      at++;
    }
    return at;
  }

  private static long node(Object base, long at, long end) {
    return at(base, at, end) == '_' ? blank(base, at, end) : iri(base, at, end);
  }

  private static long blank(Object base, long at, long end) {
    long label = after(base, after(base, at, end, '_'), end, ':');
    byte first = at(base, label, end);
    if (first == '-' || first == '.') {
      return BAD;
    }
    long behind = run(base, label, end, LABEL);
    return behind == label || at(base, behind - 1, end) == '.' ? BAD : behind;
  }

  private static long iri(Object base, long at, long end) {
    at = after(base, at, end, '<');
    if (!is(base, at, end, LETTER)) {
      return BAD;
    }
    at = after(base, run(base, at, end, SCHEME), end, ':');
    if (at(base, at, end) == '/' && at(base, at + 1, end) == '/') {
      at = run(base, at + 2, end, HOST);
      if (at(base, at, end) == ':') {
        at = run(base, at + 1, end, DIGIT);
      }
      byte c = at(base, at, end);
      if (c != '/' && c != '?' && c != '#' && c != '>') {
        return BAD;
      }
    }
    if (at == BAD) {
      return BAD;
    }
    boolean fragment = false;
    while (true) {
      at = run(base, at, end, IRI);
      byte c = at(base, at, end);
      if (c == '>') {
        return at + 1;
      } else if (c == '#' && !fragment) {
        fragment = true;
        at++;
      } else if (c == '%' && is(base, at + 1, end, HEX) && is(base, at + 2, end, HEX)) {
        at += 3;
      } else if (c < 0) {
        int point = codePoint(base, at, end);
        if (!isInIris(point)) {
          return BAD;
        }
        at += size(point);
      } else {
        return BAD;
      }
    }
  }

  /** The ucschar of RFC 3987, section 2.2. */
  private static boolean isInIris(int point) {
    if (point < 0x10000) {
      return point >= 0xA0 && point <= 0xD7FF || point >= 0xF900 && point <= 0xFDCF || point >= 0xFDF0 && point <= 0xFFEF;
    }
    return point < 0xF0000 && (point & 0xFFFF) <= 0xFFFD && (point < 0xE0000 || point >= 0xE1000);
  }

  private static long literal(Object base, long at, long end) {
    at = after(base, at, end, '"');
    while (true) {
      at = run(base, at, end, PLAIN);
      byte c = at(base, at, end);
      if (c == '"') {
        at++;
        break;
      } else if (c == '\\' && is(base, at + 1, end, ESCAPED)) {
        at += 2;
      } else if (c < 0) {
        int point = codePoint(base, at, end);
        if (point < 0 || point == 0xFFFE || point == 0xFFFF) { // the last two are escaped
          return BAD;
        }
        at += size(point);
      } else {
        return BAD;
      }
    }
    byte c = at(base, at, end);
    if (c == '@') {
      return language(base, at + 1, end);
    } else if (c == '^') {
      return datatype(base, after(base, at + 1, end, '^'), end);
    }
    return at;
  }

  private static long datatype(Object base, long at, long end) {
    long behind = iri(base, at, end);
    if (behind != BAD) {
      UTF8String datatype = slice(base, at, behind);
      for (UTF8String other : NOT_A_DATATYPE) {
        if (datatype.numBytes() == other.numBytes() && datatype.equals(other)) {
          return BAD;
        }
      }
    }
    return behind;
  }

  /** Language, script, region and direction: RFC 5646, section 2.1, and RDF 1.2 Concepts, section 3.3. */
  private static long language(Object base, long at, long end) {
    long behind = run(base, at, end, LOWER);
    if (behind - at < 2 || behind - at > 8) {
      return BAD;
    }
    long script = run(base, after(base, behind, end, '-'), end, LOWER);
    if (script - behind == 5) {
      behind = script;
    }
    long letters = run(base, after(base, behind, end, '-'), end, LOWER);
    long digits = run(base, after(base, behind, end, '-'), end, DIGIT);
    if (letters - behind == 3) {
      behind = letters;
    } else if (digits - behind == 4) {
      behind = digits;
    }
    long direction = after(base, after(base, behind, end, '-'), end, '-');
    if (direction == BAD) {
      return behind;
    }
    byte first = at(base, direction, end);
    long last = after(base, after(base, direction + 1, end, 't'), end, 'r');
    return first == 'l' || first == 'r' ? last : BAD;
  }

  /** The character of two bytes and more that begins there; -1 if it is not UTF-8 as RFC 3629 has it. */
  private static int codePoint(Object base, long at, long end) {
    int first = at(base, at, end) & 0xFF;
    int more = first >= 0xF0 ? 3 : first >= 0xE0 ? 2 : 1;
    int point = first & (0x3F >> more);
    for (int i = 1; i <= more; i++) {
      byte next = at(base, at + i, end);
      if ((next & 0xC0) != 0x80) {
        return -1;
      }
      point = point << 6 | next & 0x3F;
    }
    boolean surrogate = point >= 0xD800 && point <= 0xDFFF;
    return first < 0xC2 || first > 0xF4 || size(point) != more + 1 || surrogate || point > 0x10FFFF ? -1 : point;
  }

  private static int size(int point) {
    return point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
  }

  @Override
  public String name() {
    return "statement";
  }

  @Override
  public String description() {
    return "statement(line, file, graphs, lenient): the terms of a line of N-Triples or N-Quads; NULL: malformed";
  }

  @Override
  public BoundFunction bind(StructType arguments) {
    if (arguments.size() != 4) {
      throw new UnsupportedOperationException(description());
    }
    return this;
  }

  @Override
  public DataType[] inputTypes() {
    return new DataType[] {
      DataTypes.StringType, DataTypes.StringType, DataTypes.BooleanType, DataTypes.BooleanType
    };
  }

  @Override
  public DataType resultType() {
    return RESULT;
  }

  @Override
  public String canonicalName() {
    return "construct_messages.statement";
  }
}
