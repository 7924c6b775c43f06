"""A real browser for the tests of pages: Chromium without a window, and what it loaded, logged and shows."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from selenium.webdriver import Chrome
    from selenium.webdriver.remote.webelement import WebElement

BROWSERS: Final = ("SPANGATE_CHROMIUM", "chromium", "chromium-browser", "google-chrome")
DRIVERS: Final = ("SPANGATE_CHROMEDRIVER", "chromedriver")
_OPTIONS: Final = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage", "--hide-scrollbars"),
)
_MISSING: Final = (
    "needs Chromium and its driver: install both (chromium and chromium-driver on Debian), or name them in"
    " SPANGATE_CHROMIUM and SPANGATE_CHROMEDRIVER"
)
WAIT_S: Final = 30


def _found(names: tuple[str, ...]) -> str | None:
    """Return the program that the environment names, or the first of the others that is on the path."""
    variable, *programs = names
    return os.environ.get(variable) or next(filter(None, map(shutil.which, programs)), None)


@contextmanager
def opened(profile: Path) -> Iterator[Browser]:
    """Start a browser. Skips the test where there is none; in CI that is a failure."""
    pytest.importorskip("selenium", reason="selenium is in the extra: pip install 'spangate[test]'")
    browser, driver = _found(BROWSERS), _found(DRIVERS)
    if browser is None or driver is None:
        if os.environ.get("CI") == "true":
            pytest.fail(_MISSING)
        pytest.skip(_MISSING)
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = browser
    for option in (*_OPTIONS, f"--user-data-dir={profile}", "--window-size=1360,1000"):
        options.add_argument(option)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    chrome = webdriver.Chrome(options=options, service=webdriver.ChromeService(executable_path=driver))
    try:
        yield Browser(chrome)
    finally:
        chrome.quit()


class Browser:
    """A browser with a page in it."""

    def __init__(self, chrome: Chrome) -> None:
        self._chrome = chrome
        self._features: dict[str, str] = {}

    def visit(self, url: str) -> None:
        """Open a page of a server."""
        self._chrome.get(url)

    def open(self, page: str, anchor: str = "") -> None:
        """Open a page from disk, as a person who clicks on it, and wait until it can be used."""
        self._chrome.get("about:blank")
        self._told()
        self._chrome.get(Path(page).as_uri() + anchor)
        self.until("return document.documentElement.dataset.ready")

    def open_without_scripts(self, page: str) -> str:
        """Open a page where no script may run, as the artefact viewers of some CI servers do; return what is seen."""
        self._chrome.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
        try:
            self._chrome.get(Path(page).as_uri())
            return self.text()
        finally:
            self._chrome.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})

    def run(self, script: str, *arguments: Any) -> Any:
        """Return what a script in the page returns."""
        return self._chrome.execute_script(script, *arguments)

    def run_async(self, script: str, *arguments: Any) -> Any:
        """Return what a script in the page hands to its last argument."""
        self._chrome.set_script_timeout(WAIT_S * 2)
        return self._chrome.execute_async_script(script, *arguments)

    def until(self, script: str, *arguments: Any) -> Any:
        """Wait until a script returns something that is true, and return it."""
        from selenium.webdriver.support.ui import WebDriverWait

        return WebDriverWait(self._chrome, WAIT_S, 0.02).until(lambda _: self.run(script, *arguments))

    def one(self, selector: str) -> WebElement:
        """Return the first element that a selector finds."""
        return self._chrome.find_element("css selector", selector)

    def text(self, selector: str = "body") -> str:
        """Return what is seen of an element."""
        return self.one(selector).text

    def texts(self, selector: str) -> list[str]:
        """Return what is seen of all elements that a selector finds."""
        return [found.text for found in self._chrome.find_elements("css selector", selector)]

    def names(self, selector: str) -> list[str]:
        """Return what a screen reader calls all elements that a selector finds."""
        found = self._chrome.find_elements("css selector", selector)
        return [" ".join(one.accessible_name.split()).replace(" ,", ",") for one in found]

    def press(self, *keys: str) -> None:
        """Press keys, by the names that scripts have for them, wherever the focus is."""
        from selenium.webdriver.common.action_chains import ActionChains
        from selenium.webdriver.common.keys import Keys

        named = {"ArrowDown": Keys.DOWN, "ArrowUp": Keys.UP, "ArrowLeft": Keys.LEFT, "ArrowRight": Keys.RIGHT}
        for key in keys:
            code = named.get(key) or getattr(Keys, key.upper(), None) or key
            ActionChains(self._chrome).send_keys(code).perform()

    def media(self, **features: str) -> None:
        """Have the page believe what the system prefers, as ``prefers_color_scheme="dark"``."""
        self._features |= features
        wanted = [{"name": name.replace("_", "-"), "value": value} for name, value in self._features.items()]
        self._chrome.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": wanted})

    def width(self, pixels: int, height: int = 1000) -> None:
        """Give the window another size."""
        metrics = {"width": pixels, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self._chrome.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)

    def printed(self) -> bytes:
        """Return the page as it is printed, as PDF in base 64."""
        return str(self._chrome.execute_cdp_cmd("Page.printToPDF", {})["data"]).encode()

    def picture(self, path: Path) -> None:
        """Write the whole page to a file as it looks, and say where that is."""
        width, height = self.run("return [innerWidth, document.documentElement.scrollHeight]")
        self.width(width, min(height, 4000))
        self.run("scrollTo(0, 0)")
        self._chrome.save_screenshot(str(path))
        print(f"screenshot: {path}")  # noqa: T201  whoever runs the test may want to look at it

    def console(self) -> list[str]:
        """Return what the page has logged since it was opened: errors, and what its policy forbade."""
        return [entry["message"] for entry in self._log("browser")]

    def requests(self) -> list[str]:
        """Return the addresses that the page has asked for since it was opened."""
        return [
            told["params"]["request"]["url"] for told in self._told() if told["method"] == "Network.requestWillBeSent"
        ]

    def _told(self) -> list[dict[str, Any]]:
        return [json.loads(entry["message"])["message"] for entry in self._log("performance")]

    def _log(self, kind: str) -> list[Any]:
        return list(self._chrome.get_log(kind))  # type: ignore[no-untyped-call] # the driver's own
