"""axe-core on the open page: what it finds, and whether the page is wider than the screen. Opens no page."""

from __future__ import annotations

from typing import Final

AXE: Final = """
await page.evaluate(given.axe);
const rules = { "target-size": { enabled: true } };  // of WCAG 2.2, which axe-core leaves off by default
const { violations, passes } = await page.evaluate((rules) => window.axe.run({ rules }), rules);
const described = violations.flatMap(({ id, nodes }) => nodes.map(({ html, failureSummary }) =>
  `${id}: ${html.slice(0, 200)} ${failureSummary}`));
const wide = await page.evaluate(() => document.documentElement.scrollWidth > innerWidth);
return { described, wide, passes: passes.length };
"""
"""A script for `Browser.run`, which is given the source of axe-core as `axe`."""
