package construct_messages.spark;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Any line, token by token: RDF 1.2 N-Triples and N-Quads, section 7, with terms in canonical form.
 *
 * <p>It returns what {@code documents.lines} returns in Python workers. Its patterns are
 * possessive where a stack could overflow.
 */
final class Tokens {
  private static final String HEX = "[0-9A-Fa-f]";
  private static final String SPACE = "[ \\t]*+";

  // --- IRIs: RFC 3987, section 2.2 -------------------------------------------------------------------------------

  private static final String UCSCHAR = ucschar();
  private static final String PRIVATE = "\\ue000-\\uf8ff\\x{f0000}-\\x{ffffd}\\x{100000}-\\x{10fffd}";
  private static final String PLAIN = "A-Za-z0-9\\-._~!$&'()*+,;=";
  private static final String OCTET = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])";
  private static final String IRI =
      "[A-Za-z][A-Za-z0-9+.\\-]*:(?://(?:" + chars(":", UCSCHAR) + "@)?(?:" + address() + "|" + chars("", UCSCHAR)
          + ")(?::[0-9]*)?+(?=[/?#]|\\z)|(?!//))" + chars(":@/", UCSCHAR)
          + "(?:\\?" + chars(":@/?", UCSCHAR + PRIVATE) + ")?+(?:#" + chars(":@/?", UCSCHAR) + ")?+";
  private static final String NOT_IN_IRIREF = "\\x00-\\x20<>\"{}|^`\\\\";
  private static final Pattern STRICT_IRI = Pattern.compile(IRI);
  private static final Pattern LENIENT_IRI = Pattern.compile("[A-Za-z][A-Za-z0-9+.\\-]*:[^" + NOT_IN_IRIREF + "]*+");

  private static String ucschar() {
    StringBuilder ranges = new StringBuilder("\\u00a0-\\ud7ff\\uf900-\\ufdcf\\ufdf0-\\uffef");
    for (int plane = 1; plane <= 14; plane++) {
      ranges.append(String.format("\\x{%x%s}-\\x{%xfffd}", plane, plane == 14 ? "1000" : "0000", plane));
    }
    return ranges.toString();
  }

  private static String chars(String more, String others) {
    String ascii = "[" + PLAIN + more + "]";
    return ascii + "*(?:(?:%" + HEX + "{2}|[" + others + "]+)" + ascii + "*)*+";
  }

  /** The IP-literal of RFC 3986, section 3.2.2. */
  private static String address() {
    String group = HEX + "{1,4}";
    String last = "(?:" + group + ":" + group + "|" + OCTET + "(?:\\." + OCTET + "){3})";
    StringBuilder forms = new StringBuilder("(?:" + group + ":){6}" + last + "|::(?:" + group + ":){5}" + last);
    for (int before = 0; before < 5; before++) {
      String begin = "(?:(?:" + group + ":){0," + before + "}" + group + ")?";
      forms.append("|" + begin + "::(?:" + group + ":){" + (4 - before) + "}" + last);
    }
    forms.append("|(?:(?:" + group + ":){0,5}" + group + ")?::" + group);
    forms.append("|(?:(?:" + group + ":){0,6}" + group + ")?::");
    return "\\[(?:" + forms + "|[vV]" + HEX + "+\\.[" + PLAIN + ":]+)\\]";
  }

  // --- language tags: RFC 5646, section 2.1 ----------------------------------------------------------------------

  private static final String DIRECTION = "(?:--(?:ltr|rtl))?";
  private static final Pattern STRICT_TAG =
      Pattern.compile(
          "@(?i:(?:[a-z]{2,3}(?:-[a-z]{3}){0,3}|[a-z]{4,8})(?:-[a-z]{4})?(?:-(?:[a-z]{2}|[0-9]{3}))?"
              + "(?:-(?:[a-z0-9]{5,8}|[0-9][a-z0-9]{3}))*(?:-[a-wy-z0-9](?:-[a-z0-9]{2,8})+)*(?:-x(?:-[a-z0-9]{1,8})+)?"
              + "|x(?:-[a-z0-9]{1,8})+"
              + "|en-gb-oed|i-ami|i-bnn|i-default|i-enochian|i-hak|i-klingon|i-lux|i-mingo|i-navajo|i-pwn|i-tao|i-tay|i-tsu"
              + "|sgn-be-fr|sgn-be-nl|sgn-ch-de|art-lojban|cel-gaulish|no-bok|no-nyn|zh-guoyu|zh-hakka|zh-min|zh-min-nan"
              + "|zh-xiang)"
              + DIRECTION);
  private static final Pattern LENIENT_TAG = Pattern.compile("@[A-Za-z]++(?:-[A-Za-z0-9]++)*+" + DIRECTION);

  // --- tokens ----------------------------------------------------------------------------------------------------

  private static final String NAME_START =
      "A-Za-z\\u00c0-\\u00d6\\u00d8-\\u00f6\\u00f8-\\u02ff\\u0370-\\u037d\\u037f-\\u1fff\\u200c-\\u200d\\u2070-\\u218f"
          + "\\u2c00-\\u2fef\\u3001-\\ud7ff\\uf900-\\ufdcf\\ufdf0-\\ufffd\\x{10000}-\\x{effff}_0-9";
  private static final String NAME = NAME_START + "\\-\\u00b7\\u0300-\\u036f\\u203f-\\u2040";
  private static final String UCHAR = // of no surrogate
      "\\\\u(?![Dd][89A-Fa-f])" + HEX + "{4}|\\\\U00(?:0(?!0[Dd][89A-Fa-f])" + HEX + "|10)" + HEX + "{4}";
  private static final String IRIREF = "<(?:[^" + NOT_IN_IRIREF + "]|" + UCHAR + ")*+>";
  private static final String STRING =
      "\"[^\"\\\\\\n\\r]*+(?:(?:\\\\[tbnrf\"'\\\\]|" + UCHAR + ")[^\"\\\\\\n\\r]*+)*+\"";
  private static final String TAG = "@[A-Za-z]++(?:-[A-Za-z0-9]++)*+(?:--[A-Za-z]++)?+";
  private static final Pattern TOKEN =
      Pattern.compile(
          SPACE + "(<<\\(|\\)>>|\\.|" + IRIREF + "|_:[" + NAME_START + "](?:[" + NAME + ".]*[" + NAME + "])?|"
              + STRING + "(?:" + SPACE + "(?:" + TAG + "|\\^\\^" + SPACE + IRIREF + "))?+)");
  private static final String COMMENT = SPACE + "(?:#.*+)?+";
  private static final Pattern END = Pattern.compile(COMMENT, Pattern.DOTALL);
  private static final Pattern NOTHING =
      Pattern.compile(
          SPACE + "(?:VERSION" + SPACE + "(?:\"[^\"\\\\]*+\"|'[^'\\\\]*+'))?+" + COMMENT, Pattern.DOTALL);
  private static final Pattern TRIPLE_TERM = Pattern.compile("\\([<_]<[<_\"t]");
  private static final Pattern QUAD = Pattern.compile("[<_]<[<_\"t][<_]?[.]");
  private static final Pattern TRIPLE = Pattern.compile("[<_]<[<_\"t][.]");

  /** See {@link Statement#invoke}. */
  static InternalRow statement(UTF8String line, UTF8String file, boolean graphs, boolean lenient) {
    String text = line.toString();
    if (NOTHING.matcher(text).matches()) {
      return Statement.row(null, null, null, null);
    }
    if (!line.isValid()) {
      return null;
    }
    List<String> terms = new ArrayList<>();
    StringBuilder kinds = new StringBuilder(); // a character for each token, and t for a triple term
    String scope = null;
    Matcher next = TOKEN.matcher(text);
    int at = 0;
    while (next.region(at, text.length()).lookingAt()) {
      at = next.end();
      String token = next.group(1);
      char kind = token.equals("<<(") ? '(' : token.charAt(0);
      if (kind == '_' && scope == null) {
        scope = Recent.ofThread().scope(file).toString();
      }
      String term = kind == '<' || kind == '"' || kind == '_' ? term(token, scope, lenient) : token;
      if (term == null) {
        return null;
      }
      terms.add(term);
      if (kind == ')') {
        int start = kinds.length() - 4;
        if (start < 0 || !TRIPLE_TERM.matcher(kinds.substring(start)).matches()) {
          return null;
        }
        kinds.setLength(start);
        kind = 't';
      }
      kinds.append(kind);
    }
    boolean whole = END.matcher(text).region(at, text.length()).matches();
    if (!whole || !(graphs ? QUAD : TRIPLE).matcher(kinds).matches()) {
      return null;
    }
    int end = terms.size() - (kinds.length() == 5 ? 2 : 1);
    String object = String.join(" ", terms.subList(2, end));
    return Statement.row(
        UTF8String.fromString(terms.get(0)),
        UTF8String.fromString(terms.get(1)),
        UTF8String.fromString(object),
        kinds.length() == 5 ? UTF8String.fromString(terms.get(end)) : null);
  }

  // --- terms in canonical form; null if they are illegal ---------------------------------------------------------

  private static String term(String token, String scope, boolean lenient) {
    switch (token.charAt(0)) {
      case '_':
        return scope + token.substring(2);
      case '<':
        return iri(token.substring(1, token.length() - 1), lenient);
      default:
        int quote = token.lastIndexOf('"');
        String suffix = suffix(token.substring(quote + 1).replace(" ", "").replace("\t", ""), lenient);
        return suffix == null ? null : '"' + escaped(decoded(token.substring(1, quote))) + '"' + suffix;
    }
  }

  private static String iri(String text, boolean lenient) {
    String iri = decoded(text);
    return (lenient ? LENIENT_IRI : STRICT_IRI).matcher(iri).matches() ? "<" + iri + ">" : null;
  }

  private static String suffix(String text, boolean lenient) {
    if (text.isEmpty()) {
      return text;
    }
    if (text.charAt(0) == '@') {
      return (lenient ? LENIENT_TAG : STRICT_TAG).matcher(text).matches() ? text.toLowerCase(Locale.ROOT) : null;
    }
    String datatype = iri(text.substring(3, text.length() - 1), lenient);
    boolean untagged = Statement.LANG_STRING.equals(datatype) || Statement.DIR_LANG_STRING.equals(datatype);
    if (datatype == null || untagged && !lenient) {
      return null;
    }
    return datatype.equals(Statement.STRING) ? "" : "^^" + datatype;
  }

  private static String decoded(String text) {
    if (text.indexOf('\\') < 0) {
      return text;
    }
    StringBuilder decoded = new StringBuilder(text.length());
    for (int at = 0; at < text.length(); at++) {
      char c = text.charAt(at);
      if (c != '\\') {
        decoded.append(c);
        continue;
      }
      c = text.charAt(++at);
      if (c == 'u' || c == 'U') {
        int digits = c == 'u' ? 4 : 8;
        decoded.appendCodePoint(Integer.parseInt(text.substring(at + 1, at + 1 + digits), 16));
        at += digits;
      } else {
        int short_ = "tbnrf".indexOf(c);
        decoded.append(short_ < 0 ? c : "\t\b\n\r\f".charAt(short_));
      }
    }
    return decoded.toString();
  }

  private static String escaped(String text) {
    StringBuilder escaped = new StringBuilder(text.length());
    for (int at = 0; at < text.length(); at++) {
      char c = text.charAt(at);
      int short_ = "\t\b\n\r\f\"\\".indexOf(c);
      if (short_ >= 0) {
        escaped.append('\\').append("tbnrf\"\\".charAt(short_));
      } else if (c < 0x20 || c == 0x7F || c == 0xFFFE || c == 0xFFFF) {
        escaped.append(String.format("\\u%04X", (int) c));
      } else {
        escaped.append(c);
      }
    }
    return escaped.toString();
  }

  private Tokens() {}
}
