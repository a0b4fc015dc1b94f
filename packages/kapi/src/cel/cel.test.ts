import assert from "node:assert/strict";
import { describe, test } from "node:test";
import {
  CelBudgetError,
  CelCompileError,
  CelError,
  compileCel,
  evaluateOnce,
  fromJson,
  listOf,
  mapOf,
  Meter,
  toJson,
  types,
  type CelType,
} from "./index.ts";

const values: readonly (readonly [string, unknown])[] = [
  ["1 + 2 * 3", 7],
  ["(1 + 2) * 3", 9],
  ["-5 / 2", -2],
  ["-5 % 3", -2],
  ["1.5 + 2.5", 4],
  ["2 > 1.5", true],
  ["1u < 2", true],
  ["'a' + 'b' == 'ab'", true],
  ["[1,2,3].all(x, x > 0)", true],
  ["[1,2,3].exists(x, x == 2)", true],
  ["[1,2,3].map(x, x * 2)", [2, 4, 6]],
  ["[1,2,3].filter(x, x > 1)", [2, 3]],
  ["[1,2,3].map(x, x > 1, x * 2)", [4, 6]],
  ["{'a': 1}['a']", 1],
  ["{'a': 1}.a", 1],
  ["has({'a': 1}.b)", false],
  ["'a' in ['a','b']", true],
  ["'a' in {'a': 1}", true],
  ["size('héllo')", 5],
  ["'abc'.size()", 3],
  ["true || 1/0 == 1", true],
  ["1/0 == 1 || true", true],
  ["false && 1/0 == 1", false],
  ["dyn(1) == 1.0", true],
  ["type(1) == int", true],
  ["'%s %d %.2f'.format(['a', 1, 1.5])", "a 1 1.50"],
  ["'a,b,c'.split(',')", ["a", "b", "c"]],
  ["['a','b'].join('-')", "a-b"],
  ["'hello'.substring(1,3)", "el"],
  ["'hello'.charAt(1)", "e"],
  ["'hello'.indexOf('l')", 2],
  ["'hello'.lastIndexOf('l')", 3],
  ["'aXbX'.replace('X','-')", "a-b-"],
  ["'aXbX'.replace('X','-',1)", "a-bX"],
  ["' a '.trim()", "a"],
  ["'Ab'.lowerAscii()", "ab"],
  ["'foo123'.find('[0-9]+')", "123"],
  ["'a1b22'.findAll('[0-9]+')", ["1", "22"]],
  ["'a1b22'.findAll('[0-9]+', 1)", ["1"]],
  ["[1,2,3].isSorted()", true],
  ["[1,2,3].sum()", 6],
  ["[3,1,2].min()", 1],
  ["[3,1,2].max()", 3],
  ["[1,2,1].lastIndexOf(1)", 2],
  ["[[1],[2]].flatten()", [1, 2]],
  ["[1,1,2].distinct()", [1, 2]],
  ["[3,1,2].sort()", [1, 2, 3]],
  ["lists.range(3)", [0, 1, 2]],
  ["[1,2].reverse()", [2, 1]],
  ["[1,2,3].slice(1,3)", [2, 3]],
  ["[{'n':2},{'n':1}].sortBy(e, e.n)", [{ n: 1 }, { n: 2 }]],
  ["sets.contains([1,2],[1])", true],
  ["sets.equivalent([1,2],[2,1])", true],
  ["sets.intersects([1],[2])", false],
  ["url('https://u@ex.com:80/a%20b?k=v&k=w').getHost()", "ex.com:80"],
  ["url('https://ex.com:80/a?k=v').getPort()", "80"],
  ["url('https://[::1]:80/a').getHostname()", "::1"],
  ["url('https://x/a?k=v&k=w').getQuery()", { k: ["v", "w"] }],
  ["isURL('foo')", false],
  ["isURL('/path')", true],
  ["ip('192.168.0.1').family()", 4],
  ["ip('::1').isLoopback()", true],
  ["isIP('010.0.0.1')", false],
  ["ip.isCanonical('2001:DB8::1')", false],
  ["cidr('10.0.0.0/8').containsIP('10.1.2.3')", true],
  ["cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16')", true],
  ["cidr('10.1.0.0/8').masked() == cidr('10.0.0.0/8')", true],
  ["string(cidr('10.1.0.0/8').ip())", "10.1.0.0"],
  ["cidr('10.0.0.0/8').prefixLength()", 8],
  ["quantity('1Gi').isGreaterThan(quantity('1G'))", true],
  ["quantity('1500m').isInteger()", false],
  ["quantity('2k').asInteger()", 2000],
  ["quantity('50k').add(20).sub(quantity('10')).compareTo(quantity('50010')) == 0", true],
  ["isQuantity('1x')", false],
  ["semver('1.2.3').isLessThan(semver('1.10.0'))", true],
  ["semver('v1.2', true).minor()", 2],
  ["isSemver('1.0')", false],
  ["!format.dns1123Label().validate('abc').hasValue()", true],
  ["format.dns1123Label().validate('Abc').hasValue()", true],
  ["format.named('uuid').value().validate('x')", ["does not match the UUID format"]],
  ["optional.of(1).orValue(2)", 1],
  ["optional.none().orValue(2)", 2],
  ["{'a': {'b': 1}}.?a.?b.orValue(0)", 1],
  ["{'a': 1}[?'b'].hasValue()", false],
  ["[?optional.of(1), ?optional.none()]", [1]],
  ["{?'a': optional.of(1), ?'b': optional.none()}", { a: 1 }],
  ["optional.of(2).optMap(x, x * 2).value()", 4],
  ["optional.of(2).optFlatMap(x, optional.of(x+1)).value()", 3],
  ["[1,2].all(i, v, v == i + 1)", true],
  ["{'a':1}.all(k, v, k == 'a' && v == 1)", true],
  ["[10,20].transformList(i, v, v + i)", [10, 21]],
  ["{'a':1,'b':2}.transformMap(k, v, v > 1, v * 10)", { b: 20 }],
  ["['x'].transformMapEntry(i, v, {v: i})", { x: 0 }],
  ["[1,2].exists(i, v, v == 2)", true],
  ["timestamp('2024-01-01T00:00:00Z') + duration('1h') == timestamp('2024-01-01T01:00:00Z')", true],
  ["duration('90s').getMinutes()", 1],
  ["timestamp('2024-03-01T00:00:00Z').getMonth()", 2],
  ["timestamp('2024-03-01T00:00:00Z').getHours('+02:00')", 2],
  ["string(duration('1h1.5s'))", "3601.5s"],
  ["timestamp('2024-01-01T00:00:00Z') < timestamp('2025-01-01T00:00:00Z')", true],
  ["'aaaa'.matches('^a+$')", true],
  ["r'\\d' == '\\\\d'", true],
  ["b'abc' == bytes('abc')", true],
  ["'''a\nb''' == 'a\\nb'", true],
  ["0x10 == 16", true],
  ["-9223372036854775808", -9223372036854775808n],
  ["true ? 'a' : 'b'", "a"],
  ["string(1.5)", "1.5"],
  ["int('42')", 42],
  ["bool('true')", true],
  ["[1,2,3][1]", 2],
  ["'\\u00e9'", "é"],
  ['"a\\"b"', 'a"b'],
  ["'abc'.startsWith('ab') && 'abc'.endsWith('bc') && 'abc'.contains('b')", true],
  ["strings.quote('a\"b')", '"a\\"b"'],
  ["[1,2,3].exists_one(x, x > 2)", true],
  ["null == null", true],
  ["double(1)/3.0 > 0.33", true],
  ["[optional.of(1)].unwrapOpt()", [1]],
  ["[1,2].first().value()", 1],
  ["'reserved'.reverse()", "devreser"],
  ["// c\n1 // d", 1],
];

const failures: readonly string[] = [
  "1 == 1.0",
  "9223372036854775807 + 1",
  "'x' > 1",
  "foo",
  "[1, 'a']",
  "1 ? 2 : 3",
  "[1][5]",
  "{'a':1}.b",
  "'a'.charAt(5)",
  "optional.none().value()",
  "1 in [1.0]",
];

describe("CEL values", () => {
  for (const [source, expected] of values) {
    test(source, () => assert.deepEqual(toJson(evaluateOnce(source, {})), expected));
  }
  for (const source of failures) {
    test(`${source} fails`, () => {
      assert.throws(
        () => evaluateOnce(source, {}),
        (error) => error instanceof CelError || error instanceof CelCompileError,
      );
    });
  }
});

describe("CEL variables", () => {
  const config = {
    replicas: 3,
    name: "web",
    tags: ["a", "b"],
    limits: { cpu: 2.5 },
    big: 9223372036854775807n,
  };

  test("JSON is seen with exact integers", () => {
    const variables = { config: fromJson(config) };
    assert.equal(toJson(evaluateOnce("config.replicas * 2 + size(config.tags)", variables)), 8);
    assert.equal(toJson(evaluateOnce("config.limits.cpu * 2.0", variables)), 5);
    assert.equal(toJson(evaluateOnce("config.big - 1", variables)), 9223372036854775806n);
    assert.deepEqual(
      toJson(evaluateOnce("{'n': config.name, 't': config.tags.map(t, t + '!')}", variables)),
      {
        n: "web",
        t: ["a!", "b!"],
      },
    );
    assert.equal(toJson(evaluateOnce("has(config.nope) ? 1 : 0", variables)), 0);
  });

  test("an own __proto__ key is data", () => {
    const variables = { c: fromJson(JSON.parse('{"__proto__":{"x":1}}')) };
    assert.equal(toJson(evaluateOnce("c['__proto__'].x", variables)), 1);
    assert.throws(() => evaluateOnce("c.constructor", variables), /no such key: constructor/);
    assert.throws(() => evaluateOnce("c.hasOwnProperty", variables), /no such key/);
  });
});

describe("CEL checking", () => {
  const variables: Record<string, CelType> = {
    n: types.int,
    s: { kind: "string", max: 100 },
    l: listOf({ kind: "string", max: 10 }, 50),
    m: mapOf(types.string, types.int, 20),
  };
  const refused: [string, RegExp][] = [
    ["n > 'x'", /found no matching overload for '_>_' applied to '\(int, string\)'/],
    ["nope", /undeclared reference to 'nope' \(in container ''\)/],
    ["s.foo", /type 'string' does not support field selection/],
    ["s.nope()", /undeclared reference to 'nope'/],
    ["n.all(x, true)", /cannot be range of a comprehension/],
    ["n ? 1 : 2", /expected type 'bool' but found 'int'/],
    ["l.map(1, 2)", /argument must be a simple name/],
    ["l.all(x, x)", /expected type 'bool' but found 'string'/],
    ["1 +", /Syntax error/],
    ["'abc", /unterminated string/],
    ["a.b{c: 1}", /message literals are not supported/],
    ["let", /reserved identifier: let/],
    ["s.matches('(?=x)')", /invalid matches argument/],
    ["duration('1 day')", /invalid duration argument/],
    ["[1, 'a']", /expected type 'int' but found 'string'/],
    ["n == s", /found no matching overload for '_==_'/],
    [`${"(".repeat(300)}1${")".repeat(300)}`, /recursion limit exceeded/],
    [`1${"+1".repeat(300)}`, /recursion limit exceeded/],
    [" ".repeat(100_001), /expression code point size exceeds limit/],
  ];
  for (const [source, message] of refused) {
    test(`refuses ${source.slice(0, 40)}`, () => {
      assert.throws(
        () => compileCel(source, { variables }),
        (error) => error instanceof CelCompileError && message.test(error.message),
      );
    });
  }

  test("errors carry their place", () => {
    assert.throws(() => compileCel("true &&\n  n > 'x'", { variables }), { line: 2, column: 5 });
  });

  test("long chains of logical operators stay shallow", () => {
    const source = Array.from({ length: 2000 }, (_, i) => `n != ${i + 10}`).join(" && ");
    assert.equal(
      compileCel(source, { variables }).evaluate(
        { n: 1n, s: "", l: fromJson([]), m: fromJson({}) },
        new Meter(100_000),
      ),
      true,
    );
  });

  test("the result type is checked", () => {
    assert.throws(() => compileCel("n", { variables, result: types.bool }), /must evaluate to bool/);
    assert.equal(compileCel("s + 'x'", { variables, result: types.string }).type.kind, "string");
  });

  test("which variables an expression uses", () => {
    assert.deepEqual([...compileCel("l.all(n, n != s)", { variables }).uses], ["s", "l"]);
  });
});

describe("CEL cost", () => {
  const cost = (source: string, self: CelType): number => compileCel(source, { variables: { self } }).cost;
  const strings = listOf({ kind: "string", max: 10 }, 100);

  // What the public cost model gives for the same expressions (cel-go "checker/cost").
  const priced: [string, CelType, number][] = [
    ["self", types.bool, 1],
    ["self == 1", types.int, 2],
    ["self.contains('abcdefghij')", { kind: "string", max: 100 }, 11],
    ["self.matches('^[a-z]+$')", { kind: "string", max: 99 }, 21],
    ["self.all(x, x == 'a')", strings, 502],
    ["self.size() > 0", strings, 3],
    ["self.exists(x, true)", strings, 402],
  ];
  for (const [source, type, expected] of priced) {
    test(`${source} costs ${expected}`, () => assert.equal(cost(source, type), expected));
  }

  test("nesting multiplies", () => {
    const once = cost("self.all(x, x == 'a')", strings);
    const twice = cost("self.all(x, self.all(y, x == y))", strings);
    assert.ok(twice > once * 100 && twice < once * 130);
  });
});

/** CPU milliseconds of `work`: what other processes do does not count. */
function cpuOf(work: () => void): number {
  const before = process.cpuUsage();
  work();
  const used = process.cpuUsage(before);
  return (used.user + used.system) / 1000;
}

describe("CEL bounds", () => {
  const data = {
    numbers: Array.from({ length: 20_000 }, (_, i) => i),
    texts: Array.from({ length: 20_000 }, (_, i) => `item-${i}`),
    long: "ab".repeat(200_000),
    objects: Array.from({ length: 5000 }, (_, i) => ({ name: `n${i}`, labels: { a: "b" } })),
  };
  const hostile = [
    "numbers.all(x, numbers.all(y, x + y >= 0))",
    "texts.all(x, texts.exists(y, x + y == 'q') || true)",
    "numbers.all(i, long.matches('(a|b)*a(a|b){200}$') || true)",
    "texts.all(x, long.matches('(' + x + '){500}') || true)",
    "numbers.all(i, long.findAll('[ab]').size() > 0)",
    "numbers.all(i, long.replace('a', 'bb').size() > 0)",
    "numbers.all(i, objects == objects)",
    "numbers.all(i, '%s'.format([objects]) != '')",
    "numbers.all(i, numbers.all(j, 1 / 0 == 1 || true))",
    "numbers.all(i, (long + long + long).size() > 0)",
    "numbers.all(i, lists.range(1000000).size() > 0)",
    "numbers.all(i, texts.sort().size() > 0)",
    "numbers.all(i, timestamp('2024-01-01T00:00:00Z').getHours('Europe/Berlin') >= 0)",
  ];
  const declared = Object.fromEntries(Object.keys(data).map((name) => [name, types.dyn]));
  for (const source of hostile) {
    test(`${source} ends within its budget`, () => {
      const program = compileCel(source, { variables: declared });
      const variables = Object.fromEntries(
        Object.entries(data).map(([name, value]) => [name, fromJson(value)]),
      );
      let failure: unknown;
      const ms = cpuOf(() => {
        try {
          program.evaluate(variables, new Meter(750_000));
        } catch (error) {
          failure = error;
        }
      });
      assert.ok(failure instanceof CelBudgetError || failure instanceof CelError, String(failure));
      // Measured below 50 ms; the margin is for a machine that is busy or cold.
      assert.ok(ms < 300, `${ms} ms`);
    });
  }
});
