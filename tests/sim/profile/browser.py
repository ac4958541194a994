"""A headless Chromium that opens pages from disk, and in which a test acts as a user."""

import json
import os
import shutil
from pathlib import Path

from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.actions.wheel_input import ScrollOrigin
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

from gen.tools import require_programs

__all__ = ["SIZE", "Browser"]

#: Width and height of the window.
SIZE = (1400, 900)
_PATIENCE = 10
_WORDS = ("--headless=new", "--hide-scrollbars", "--disable-dev-shm-usage")
_LOGS = {"browser": "ALL", "performance": "ALL"}


class Browser:
    """Context manager of a browser.

    Raises
    ------
    MissingToolError
        If Chromium or its driver is not installed; the message has the command that installs it.
    """

    def __init__(self):
        require_programs("chromium", "chromedriver", where="page in a browser")
        options = Options()
        options.binary_location = shutil.which("chromium")
        # Chromium has no sandbox for root.
        root = ["--no-sandbox"] if os.geteuid() == 0 else []
        for word in (*_WORDS, *root, "--window-size={},{}".format(*SIZE)):
            options.add_argument(word)
        options.set_capability("goog:loggingPrefs", _LOGS)
        service = Service(shutil.which("chromedriver"))
        self.driver = webdriver.Chrome(options=options, service=service)
        self.resize(*SIZE)

    def __enter__(self):
        return self

    def __exit__(self, *ending):
        self.driver.quit()

    def resize(self, width, height):
        """Give the window's inside this size."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)

    def open(self, file, address=""):
        """Open a page anew, and forget what was logged before."""
        self.driver.get("about:blank")
        for log in _LOGS:
            self.driver.get_log(log)
        self.driver.get(Path(file).resolve().as_uri() + address)

    def errors(self):
        """What the console has said since the page was opened, or since the last call."""
        return [each["message"] for each in self.driver.get_log("browser")]

    def requests(self):
        """Addresses that have been requested since the page was opened, or since the last call."""
        messages = [
            json.loads(each["message"])["message"] for each in self.driver.get_log("performance")
        ]
        sent = [
            each["params"] for each in messages if each["method"] == "Network.requestWillBeSent"
        ]
        return [each["request"]["url"] for each in sent]

    def run(self, script, *arguments):
        """Result of a script in the page."""
        return self.driver.execute_script(script, *arguments)

    def first_paint(self):
        """Milliseconds from the start of the navigation to the first paint."""
        script = "return performance.getEntriesByType('paint').map((each) => each.startTime)"
        return min(self.wait(lambda: self.run(script)))

    def wait(self, condition):
        """What the condition gives as soon as it holds."""
        return WebDriverWait(self.driver, _PATIENCE, 0.02).until(lambda driver: condition())

    def find(self, css):
        """The first element that a selector names."""
        return self.driver.find_element(By.CSS_SELECTOR, css)

    def all(self, css):
        """Every element that a selector names."""
        return self.driver.find_elements(By.CSS_SELECTOR, css)

    def text(self, css):
        """Text that is seen in an element."""
        return self.find(css).text

    def fields(self):
        """Fields of the address."""
        script = "return Object.fromEntries(new URLSearchParams(location.hash.slice(1)))"
        return self.run(script)

    def hover(self, element, right=0, down=0):
        """Move the pointer so far from the middle of an element."""
        self._at(element, right, down).perform()

    def click(self, element, right=0, down=0):
        """Click so far from the middle of an element."""
        self._at(element, right, down).click().perform()

    def drag(self, element, right):
        """Drag from the middle of an element to the right."""
        held = self._at(element, 0, 0).click_and_hold()
        held.move_by_offset(right // 2, 0).move_by_offset(right - right // 2, 0).release().perform()

    def wheel(self, element, by, right=0):
        """Turn the wheel over an element."""
        origin = ScrollOrigin.from_element(element, right, 0)
        ActionChains(self.driver).scroll_from_origin(origin, 0, by).perform()

    def _at(self, element, right, down):
        actions = ActionChains(self.driver, duration=20)
        return actions.move_to_element_with_offset(element, right, down)
